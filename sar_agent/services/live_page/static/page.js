// Asks for the newest snapshot and shows it. Text is set as text, never as HTML.
"use strict";

const EVERY = 2000, SHOWN_JOBS = 100;
const by = (id) => document.getElementById(id);
let state = null, shownLoads = -1, job = "", shownJob = "", heard = 0, clockStep = 0, asking = false;

async function ask(path) {
  const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(15000) });
  const date = Date.parse(answer.headers.get("Date") || "");
  if (!Number.isNaN(date)) clockStep = date - Date.now();
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function moment(seconds) {
  const date = new Date(seconds * 1000), today = new Date().toDateString() === date.toDateString();
  const clock = date.toTimeString().slice(0, 8);
  const two = (number) => String(number).padStart(2, "0");
  return today ? clock : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

function length(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// Switches of Mellanox are called MF0;NAME:MODEL/UNIT.
const plain = (text) => text.replace(/MF0;([^:";]+):[^"\/]+(\/[^"]*)?"/g, (_, name, unit) => name + (unit && unit !== "/U1" ? unit : "") + '"');

const percent = (share) => share === null || share === undefined ? "–" : share < 0.0995 ? `${(share * 100).toFixed(1)} %` : `${Math.round(share * 100)} %`;
const load = (value) => value === null || value === undefined ? "–" : value.toFixed(2);

function showAge(problem) {
  const age = by("age");
  if (problem) {
    age.className = "stale";
    age.textContent = `${problem}${heard ? `; what follows is of ${moment(heard / 1000)}` : ""}`;
    return;
  }
  if (!state) return;
  const seconds = (Date.now() + clockStep) / 1000 - state.at, late = state.at && seconds > 3 * state.interval + 60;
  age.className = late ? "stale" : "";
  age.textContent = !state.at ? "the first pass is under way" : late
    ? `no pass has ended for ${length(seconds)}: the agent waits for something, or hangs`
    : `as of ${length(seconds)} ago · ${state.mode} mode · version ${state.version}`;
}

function showWrong() {
  const list = by("troubles"), wrong = state.wrong;
  by("wrong").className = state.at ? (wrong.length ? "" : "good") : "unknown";
  by("wrong-head").textContent = wrong.length ? "What is wrong" : state.at ? "Nothing is wrong" : "Not known yet";
  const items = wrong.map((one) => {
    const item = element("li", plain(one.sentence));
    if (one.since) item.append(" ", element("small", `since ${moment(one.since)}`));
    return item;
  });
  list.replaceChildren(...(items.length ? items : [element("li", state.sentence, "soft")]));
}

function fact(name, value, title) {
  const box = element("div"), term = element("dt", name);
  if (title) box.title = title;
  box.append(term, element("dd", value));
  return box;
}

function showForce() {
  const now = state.in_force, measures = state.measures;
  by("rings").textContent = state.rings;
  if (!now) by("force").textContent = "What is in force is not known.";
  else {
    const repairs = now.amendments ? `, with ${now.amendments} repairs by OpenSM` : "";
    const what = now.ours
      ? `Generation ${now.generation}${now.routing ? ` of engine ${now.routing}` : ""}${repairs}`
      : now.dumped ? `OpenSM's own tables, from its dump of ${moment(now.dumped)} (${length((Date.now() + clockStep) / 1000 - now.dumped)} old)` : `Engine ${now.engine} of the subnet manager`;
    const age = (Date.now() + clockStep) / 1000 - now.since;
    by("force").textContent = now.dumped ? `${what}.` : `${what}, since ${moment(now.since)} (${length(age)})${now.held ? "; held by a person" : ""}`;
  }
  const planned = state.planned, facts = [];
  const beside = (name, show) => planned[name] === undefined ? show(measures[name]) : `${show(measures[name])} → ${show(planned[name])}`;
  const head = planned.load_max === undefined ? "" : "now → planned: ";
  if (measures.switches !== undefined) {
    facts.push(fact("switches, hosts' ports", `${measures.switches.toLocaleString("en")}, ${measures.terminals.toLocaleString("en")}`));
    facts.push(fact(`${head}largest predicted load`, beside("load_max", load), `no routes can do better than ${load(measures.lower_bound_load_max)}`));
    if (measures.phase_contention_mean !== undefined)
      facts.push(fact(`${head}one message at a time`, `${beside("phase_contention_mean", load)}, worst job ${beside("phase_contention_max", load)}`, "how many times as long as without contention, mean job and worst job, if every job sends to one host after the other"));
    if (now && now.lanes) facts.push(fact("virtual lanes", now.lanes));
    facts.push(fact(`${head}links that no job uses`, beside("dark_fiber_ratio", percent)));
  }
  const saved = state.saved || {}, part = (share) => `${Math.round(share * 100)} %`;
  if (saved.engine)
    facts.push(fact(`time saved against ${saved.engine}, ${saved.days === 1 ? "1 day" : `${saved.days} days`}`, `${part(saved.at_once)} at once, ${part(saved.one_at_a_time)} one at a time`, "of the time that jobs spend sending, all messages at once and one message at a time; the mean over hosts and time of the last 30 days at the most"));
  const ages = showSources();
  if (ages) facts.push(fact("age of sources", ages, "when the jobs, the fabric, the tables and the counters were like what is shown"));
  by("facts").replaceChildren(...facts);
}

function showSources() {
  const now = (Date.now() + clockStep) / 1000, known = Object.entries(state.sources).filter(([, one]) => one.at);
  return known.map(([name, one]) => `${name} ${length(now - one.at)}${one.stale ? ", stale" : ""}`).join("; ");
}

// What observers of passes say: a heading, a sentence, a table.
function showBoxes() {
  by("boxes").replaceChildren(...state.boxes.map((box) => {
    const section = element("section"), scroll = element("div", undefined, "scroll"), table = element("table"), head = element("tr"), body = element("tbody");
    section.append(element("h2", box.head));
    if (box.note) section.append(element("p", box.note, "soft"));
    if (!box.rows.length) return section;
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", box.head);
    head.append(...box.columns.map((name) => { const cell = element("th", name, "words"); cell.scope = "col"; return cell; }));
    for (const row of box.rows) {
      const line = element("tr");
      line.append(...row.map((text, i) => {
        const cell = element("td", plain(text), "words");
        cell.dataset.column = box.columns[i];
        return cell;
      }));
      body.append(line);
    }
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    scroll.append(table);
    section.append(scroll);
    return section;
  }));
}

function showJobs() {
  const wanted = by("find").value.trim(), rows = [];
  const found = state.jobs.filter((one) => !wanted || one.job.includes(wanted));
  for (const one of found.slice(0, SHOWN_JOBS)) {
    const row = element("tr"), first = element("td"), button = element("button", one.job);
    button.type = "button";
    button.dataset.job = one.job;
    button.setAttribute("aria-pressed", String(one.job === job));
    first.append(button);
    if (one.job === job) row.className = "on";
    row.append(first, element("td", load(one.predicted)), element("td", load(one.phase_contention)),
      element("td", String(one.ports)), element("td", String(one.links)), element("td", plain(one.worst_link), "words"));
    row.lastChild.title = one.worst_link;
    rows.push(row);
  }
  const body = by("jobs").tBodies[0], focused = document.activeElement?.dataset?.job;
  body.replaceChildren(...rows);
  if (focused) [...body.querySelectorAll("button")].find((one) => one.dataset.job === focused)?.focus();
  by("jobs-count").textContent = String(state.jobs_total);
  by("jobs-more").textContent = found.length > SHOWN_JOBS ? `The ${SHOWN_JOBS} with the largest predicted load; find the others by their number.`
    : found.length ? "" : wanted ? "No such job runs on several leaf switches." : "No job runs on several leaf switches.";
  by("clear").hidden = !job;
}

function showPending() {
  const rows = state.pending.map((one) => {
    const row = element("tr"), words = element("td", undefined, "words");
    const shared = one.shared.map(([name, full, jobs]) => `${plain(name)}: load ${load(full)}, with ${jobs.slice(0, 3).join(", ")}${jobs.length > 3 ? ` and ${jobs.length - 3} more` : ""}`);
    words.textContent = shared[0] || "none";
    words.title = shared.join("\n");
    row.append(element("td", one.job), element("td", one.start ? moment(one.start) : "–"), element("td", String(one.links_shared)), element("td", load(one.at_once)),
      element("td", String(one.nodes)), element("td", String(one.switches)), words);
    return row;
  });
  by("pending").hidden = !rows.length;
  by("pending-jobs").tBodies[0].replaceChildren(...rows);
  by("pending-count").textContent = rows.length < state.pending_total ? `the first ${rows.length} of ${state.pending_total}` : String(rows.length);
}

function showDecisions() {
  const gain = (one) => {
    const a = one.before?.load_max, b = one.predicted?.load_max;
    if (a === undefined || b === undefined || one.result === "failed") return "";
    const part = a ? Math.round((1 - b / a) * 100) : 0;
    return ` Largest load ${load(a)} → ${load(b)}${part > 0 ? `, ${part} % less` : part < 0 ? `, ${-part} % more` : ""}.`;
  };
  const items = state.decisions.map((one) => {
    const item = element("li", undefined, one.result === "failed" ? "failed" : "");
    const text = `${one.result}${one.generation ? ` as generation ${one.generation}` : ""}: ${one.why || one.reason}.`;
    item.append(element("time", moment(one.at)), " ", element("strong", text), gain(one));
    if (one.message) item.append(` ${one.message}.`);
    if (one.entries_changed) item.append(` ${one.entries_changed.toLocaleString("en")} entries changed${one.how ? ` (${one.how})` : ""}${one.ring_entries_moved == null ? "" : `, ${one.ring_entries_moved.toLocaleString("en")} of them of running rings`}.`);
    if (one.who !== "agent") item.append(` By ${one.who}.`);
    return item;
  });
  by("decisions").replaceChildren(...(items.length ? items : [element("li", "none yet", "soft")]));
}

function showLevels() {
  const fabric = Heat.fabric(), predicted = Heat.values();
  const rows = fabric.levels.map((level) => {
    let most = 0, unused = 0;
    for (let i = level.first; i < level.first + level.cells; i++) {
      if (predicted) { if (predicted[i] > most) most = predicted[i]; if (!predicted[i]) unused++; }
    }
    const row = element("tr");
    row.append(element("td", level.name, "words"), element("td", level.cells.toLocaleString("en")), element("td", predicted ? unused.toLocaleString("en") : "–"),
      element("td", predicted ? load(most / 1000) : "–"));
    return row;
  });
  by("levels").tBodies[0].replaceChildren(...rows);
}

async function showLoads() {
  if (!state.fabric) return;
  if (Heat.fabric()?.fabric !== state.fabric) {
    const fabric = await ask("api/fabric.json");
    if (!fabric) return;
    Heat.setFabric(fabric);
    shownLoads = -1;
  }
  if (shownLoads !== state.snapshot) {
    const loads = await ask("api/loads.json");
    if (!loads || loads.fabric !== Heat.fabric().fabric) return;  // the next turn gets both
    shownLoads = loads.snapshot;
    Heat.setValues(loads.predicted);
    showLevels();
    shownJob = null;
  }
  await showJob();
}

async function showJob() {
  if (shownJob === job) return;
  const wanted = job, found = wanted ? await ask(`api/job.json?job=${encodeURIComponent(wanted)}`) : null;
  if (wanted !== job) return;
  shownJob = wanted;
  Heat.light(found && found.cells);
  const hosts = found && (found.hosts.length > 8 ? `${found.hosts.slice(0, 8).join(" ")} … (${found.hosts.length})` : found.hosts.join(" "));
  const worst = state.jobs.find((one) => one.job === wanted);
  by("picked").textContent = !wanted ? "" : found ? `Lit: the ${found.cells.length} links of job ${wanted} on ${hosts}.${worst ? ` Its worst link is ${plain(worst.worst_link)}: predicted ${load(worst.predicted)}.` : ""}`
    : `Job ${wanted} does not run on several leaf switches any more.`;
}

async function showLink(cell) {
  const link = await ask(`api/link.json?link=${cell}`).catch(() => null);
  if (!link || cell !== Heat.cursor()) return;
  const users = link.jobs.slice(0, 6).map((one) => `${one.job} (${one.routes}${one.since ? `, since ${moment(one.since)}` : ""})`).join(", ");
  const more = link.jobs.length > 6 ? ` and ${link.jobs.length - 6} more` : "";
  by("readout").textContent = `${plain(link.name)}: predicted ${load(link.predicted)} of ${Math.round(link.rate)} Gbit/s`
    + (link.jobs.length ? `; jobs (routes): ${users}${more}` : "; no job uses it");
}

function pick(wanted) {
  job = wanted === job ? "" : wanted;
  showJobs();
  showJob().catch(() => {});
}

async function turn() {
  if (asking || document.hidden) return;
  asking = true;
  try {
    const next = await ask("api/state.json");
    const fresh = !state || next.snapshot !== state.snapshot || next.at !== state.at;
    state = next;
    heard = Date.now();
    if (fresh) { showWrong(); showJobs(); showPending(); showDecisions(); showBoxes(); }
    showForce();
    await showLoads();
    showAge("");
    if (!document.body.dataset.snapshot) document.body.dataset.first = performance.now().toFixed(0);
    document.body.dataset.snapshot = String(state.snapshot);
  } catch (error) {
    showAge(error instanceof TypeError || error.name === "TimeoutError" ? "the agent does not answer" : String(error.message));
  } finally { asking = false; }
}

Heat.legend();
Heat.onPick(showLink);
by("find").addEventListener("input", () => state && showJobs());
by("clear").addEventListener("click", () => { pick(job); by("find").focus(); });
by("jobs").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) pick(button.dataset.job);
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && job) pick(job); });
document.addEventListener("visibilitychange", turn);
let resized = 0;
window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => Heat.draw(), 80); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Heat.draw());
setInterval(turn, EVERY);
turn();
