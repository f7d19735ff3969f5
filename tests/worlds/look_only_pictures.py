"""The pictures of docs/look-only.md: `python -m tests.worlds.look_only_pictures` makes them.

Each is drawn from what the page's own command answers with `--json` on docs/examples, so that a
test can compare it with what the command says today."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from sar_agent.cli import app
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.adaptive_dumps import read_adaptive_dump
from sar_agent.slurm.job_files import read_jobs_file
from tests.worlds.doc_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE, IMAGES = ROOT / "docs/look-only.md", ROOT / "docs/images"
EXAMPLES = ROOT / "docs/examples"
_STYLE = """\
:root { color-scheme: light dark; --paper: #fdfcfa; --ink: #1d2126; --soft: #59626d;
  --faint: #c9c5bd; --bad: #b3261e; --one: #00629b; --two: #b36b00; --three: #5b7d1e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e8e6e1; --soft: #a4abb3;
  --faint: #4a525b; --bad: #ff7a6b; --one: #6cc3f5; --two: #f0a04b; --three: #a8d05e; } }
rect.paper { fill: var(--paper); } text { fill: var(--ink); font: 19px system-ui, sans-serif; }
.soft { fill: var(--soft); } line { stroke: var(--faint); stroke-width: 2; }
line.bad { stroke: var(--bad); stroke-width: 7; } line.gone { stroke-dasharray: 4 8; }
.switch { fill: var(--ink); }
.switch.gone { fill: var(--paper); stroke: var(--bad); stroke-width: 4; }
.switch.odd { stroke: var(--bad); stroke-width: 5; } .switch.off { fill: var(--faint); }
.host { fill: var(--paper); stroke: var(--soft); stroke-width: 2; }
.busy { fill: var(--faint); } .one { fill: var(--one); } .two { fill: var(--two); }
.three { fill: var(--three); } .other { stroke: var(--two); stroke-width: 5; }
.bar { fill: var(--soft); }"""
_CABLE = re.compile(r'"(S\d-\d)"\[\d+\] [–>-]+ "(S\d-\d)"\[\d+\]')
JOBS = {"4711": "one", "4712": "two", "4713": "three"}


class Drawing:
    """The example cluster: spine switches, leaf switches, and six hosts under each of them."""

    def __init__(self, *said: str) -> None:
        self.fabric = load_fabric(str(EXAMPLES / "cluster.ibnetdiscover"))
        self.said, self.height = said, 330
        self.switch, self.host, self.cable = dict[str, str](), dict[str, str](), dict[Any, str]()
        self.more: list[str] = []

    def jobs(self, names: Iterable[str]) -> Drawing:
        """Colours the hosts of these jobs."""
        records = {r.id: r for r in read_jobs_file(str(EXAMPLES / "squeue.txt"))}
        for name in names:
            self.host |= dict.fromkeys(records[name].hosts, JOBS[name])
            self.key(JOBS[name], f"job {name}")
        return self

    def key(self, kind: str, words: str) -> None:
        """A row below that says what a colour is."""
        y = self.height
        self.more += [_rect(40, y - 15, 18, 18, f"host {kind}"), _text(70, y, words, "soft")]
        self.height += 28

    def bar(self, words: str, value: float, kind: str) -> None:
        """A row below with a bar: a load of 1 is 150 wide."""
        y = self.height
        self.more += [_text(40, y, words), _rect(330, y - 15, value * 150, 18, kind)]
        self.height += 28

    def svg(self) -> str:
        """The whole picture."""
        fabric, parts, at = self.fabric, list[str](), dict[str, tuple[int, int]]()
        names = sorted(fabric.switch_name)
        for level, y in (("S1", 240), ("S2", 110)):
            here = [name for name in names if name.startswith(level)]
            at |= {name: (640 * (2 * i + 1) // (2 * len(here)), y) for i, name in enumerate(here)}
        for c in range(fabric.channels):
            a, b = (
                fabric.switch_name[ends[c]]
                for ends in (fabric.channel_source, fabric.channel_target)
            )
            if a < b:
                gone = " gone" if "gone" in (self.switch.get(a), self.switch.get(b)) else ""
                kind = self.cable.get(frozenset((a, b)), "") + gone
                (x1, y1), (x2, y2) = at[a], at[b]
                parts.append(
                    f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind.strip()}"/>'
                )
        parts.sort(key=lambda line: "bad" in line)
        for name, (x, y) in at.items():
            parts.append(_rect(x - 26, y - 13, 52, 26, f"switch {self.switch.get(name, '')}"))
            parts.append(_text(x, y - 20 if y < 200 else y + 60, name, "soft", "middle"))
        seen: dict[str, int] = {}
        for host in sorted(fabric.hosts):
            leaf = fabric.switch_name[fabric.terminal_switch[fabric.hosts[host][0]]]
            x, n = at[leaf][0], seen.setdefault(leaf, 0)
            seen[leaf] += 1
            parts.append(_rect(x - 41 + 14 * n, 258, 11, 20, f"host {self.host.get(host, '')}"))
        lines = [_text(20, 28 + 25 * i, line) for i, line in enumerate(self.said)]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {self.height}" role="img">'
        )
        title = f"<title>{escape(' '.join(self.said))}</title>\n<style>\n{_STYLE}\n</style>"
        paper = f'<rect class="paper" width="640" height="{self.height}"/>'
        return "\n".join([head, title, paper, *lines, *parts, *self.more, "</svg>", ""])


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"'
    return f'<rect {place} class="{kind.strip()}"/>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def answer(command: str) -> dict[str, Any]:
    """What the page's first command of this name answers with `--json`."""
    given = next(
        shlex.split(text.partition(" | ")[0].replace("docs/examples", str(EXAMPLES)))
        for kind, _, text in blocks(PAGE)
        if kind == "run" and text.startswith(f"sar-agent {command} ")
    )
    said = StringIO()
    with redirect_stdout(said):
        app([*given[1:], "--json"], standalone_mode=False)
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def cables() -> Drawing:
    found = answer("cables")
    finding = found["findings"][0]
    drawing = Drawing(f"{found['with_errors']} of {found['cables']} cables counted errors")
    drawing.cable[frozenset(_ends(finding["sentence"]))] = "bad"
    return drawing.jobs(finding["jobs"])


def link() -> Drawing:
    (found,) = answer("link")["links"]
    hot = max(found["directions"], key=lambda way: way["load"])
    a, b = _ends(hot["name"])
    drawing = Drawing(f"{a} → {b}: predicted load {hot['load']:.2f}")
    drawing.cable[frozenset((a, b))] = "bad"
    return drawing.jobs(job["job"] for job in hot["jobs"])


def what_if() -> Drawing:
    found = answer("what-if")
    before, after = found["load"]
    proved = "proved" if found["proved"] else "not proved"
    drawing = Drawing(
        f"{found['changed'][0].replace(chr(34), '')} pulled, rerouted, {proved}:",
        f"largest load {before:.2f} → {after:.2f}",
    )
    drawing.switch[found["changed"][0].split('"')[1]] = "gone"
    drawing.jobs(sorted(job["job"] for job in found["jobs"]))
    for job in sorted(found["jobs"], key=lambda each: each["job"]):
        for when, value in zip(("now", "after"), job["at_once"], strict=True):
            kind = JOBS[job["job"]] if when == "after" else "bar"
            drawing.bar(f"job {job['job']} {when}: {value:.2f} times", value, kind)
    return drawing


def place() -> Drawing:
    found = answer("place")
    slurm, best = found["candidates"][:2]
    drawing = Drawing(
        f"Idle by contention: {slurm['cost']:.1f} nodes on Slurm's choice,",
        f"{best['cost']:.1f} on the first proposal",
    )
    for record in read_jobs_file(str(EXAMPLES / "squeue.txt")):
        drawing.host |= dict.fromkeys(record.hosts, "busy")
    drawing.host |= dict.fromkeys(slurm["hosts"], "other")
    for host in best["hosts"]:
        drawing.host[host] = f"one {drawing.host.get(host, '')}".strip()
    for kind, words in (("busy", "busy"), ("other", "Slurm's tree rule"), ("one", "proposal")):
        drawing.key(kind, words)
    return drawing


def adaptive() -> Drawing:
    report = answer("measure")["adaptive"]
    settings = read_adaptive_dump(EXAMPLES / "ar-info.db_csv").switches
    follow, jobs = report["follow_tables"], report["jobs"]
    drawing = Drawing(
        f"{jobs - len(follow)} of {jobs} jobs pass switches that route adaptively;",
        f"by tables alone: {', '.join(follow)}",
    )
    fabric, wrong = drawing.fabric, " ".join(report["contradictions"])
    for s, name in enumerate(fabric.switch_name):
        each = settings.get(int(fabric.switch_guid[s]))
        on = each is not None and each.enabled
        drawing.switch[name] = ("one" if on else "off") + " odd" * (f'"{name}"' in wrong)
    for kind, words in (
        ("one", "adaptive"),
        ("switch off", "by tables"),
        ("switch one odd", "contradicts others"),
    ):
        drawing.key(kind, words)
    return drawing


def _ends(sentence: str) -> tuple[str, ...]:
    """The two switches of the cable that a sentence names, in its order."""
    found = _CABLE.search(sentence)
    assert found, sentence
    return found.groups()


PICTURES: dict[str, Callable[[], Drawing]] = {
    "look-cables.svg": cables,
    "look-link.svg": link,
    "look-what-if.svg": what_if,
    "look-place.svg": place,
    "look-adaptive.svg": adaptive,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw().svg())


if __name__ == "__main__":
    main()
