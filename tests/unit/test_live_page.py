"""The page of `sar-agent run`: who may read it, what it answers, and that it follows the passes."""

from __future__ import annotations

import gzip
import json
import re
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.loop import Agent
from sar_agent.fabric.spec import load_fabric
from sar_agent.reports.lost_links import LostLinks
from sar_agent.services.live_page import web_app
from sar_agent.services.live_page.pages import STATIC, LivePages
from sar_agent.services.live_page.snapshot import PageSnapshot
from sar_agent.services.live_page.web_app import Access, WebApp
from sar_agent.telemetry import http_server
from sar_lab.live.process import free_port, wait_until
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fabric_texts import in_order
from tests.worlds.json_keys import differences
from tests.worlds.live_page import ask
from tests.worlds.page_snapshot import snapshot_of

SPEC = "xgft:2;4,4;1,2"
STATIC_FOLDER = Path(__file__).parents[2] / "sar_agent/services/live_page/static"


@pytest.fixture(scope="module")
def snapshot() -> PageSnapshot:
    return snapshot_of(SPEC, 3)


def shown(snapshot: PageSnapshot, access: Access = "loopback") -> WebApp:
    pages = LivePages("test")
    pages.show(snapshot)
    return WebApp(pages, access)


@pytest.mark.parametrize("path", ["state", "fabric", "loads", "job", "link"])
def test_keys_are_those_of_the_reference(path: str, snapshot: PageSnapshot) -> None:
    assert snapshot.mix is not None
    query = {"job": f"job={snapshot.mix.jobs[0].id}", "link": "link=3"}.get(path, "")
    decision = dict.fromkeys(
        ("at", "who", "reason", "why", "result", "message", "engine", "generation", "jobs",
         "seconds", "entries_changed", "transition", "before", "predicted", "how",
         "ring_entries_moved")
    )  # fmt: skip
    app = shown(replace(snapshot, decisions=(decision,)))
    status, headers, body = ask(app, f"/api/{path}.json", query)
    assert (status, headers["Content-Type"]) == ("200 OK", "application/json")
    assert list(differences(f"/api/{path}.json", json.loads(body))) == []


def test_links_are_those_of_the_fabric_and_of_the_job(snapshot: PageSnapshot) -> None:
    app, fabric = shown(snapshot), snapshot.fabric
    assert fabric is not None and snapshot.mix is not None
    cells = json.loads(ask(app, "/api/fabric.json")[2])
    loads = json.loads(ask(app, "/api/loads.json")[2])
    assert [level["name"] for level in cells["levels"]] == [
        "leaf switches up to top switches", "top switches down to leaf switches"
    ]  # fmt: skip
    names = {}
    for cell, (s, p, t, q) in enumerate(
        zip(*(cells[k] for k in ("source", "port", "target", "target_port")), strict=True)
    ):
        names[f'"{cells["switches"][s]}"[{p}] -> "{cells["switches"][t]}"[{q}]'] = cell
    assert sorted(names) == sorted(map(fabric.channel_name, range(fabric.channels)))
    for c in range(fabric.channels):
        cell = names[fabric.channel_name(c)]
        assert loads["predicted"][cell] == pytest.approx(snapshot.load[c] * 1000, abs=0.51)  # type: ignore[index]
        link = json.loads(ask(app, "/api/link.json", f"link={cell}")[2])
        assert link["name"] == fabric.channel_name(c)
        users = {user["job"] for user in link["jobs"]}
        assert all(user["since"] == snapshot.starts.get(user["job"]) for user in link["jobs"])
        for job in snapshot.mix.jobs:
            own = json.loads(ask(app, "/api/job.json", f"job={job.id}")[2])
            assert (cell in own["cells"]) == (job.id in users)
    jobs = json.loads(ask(app, "/api/state.json")[2])["jobs"]
    assert len(jobs) == len(snapshot.mix.jobs)
    for job in jobs:
        own = json.loads(ask(app, "/api/job.json", f"job={job['job']}")[2])["cells"]
        worst = max(loads["predicted"][cell] for cell in own)
        assert job["predicted"] * 1000 == pytest.approx(worst, abs=0.51)
        assert loads["predicted"][names[job["worst_link"]]] == worst


def test_pending_jobs_show_the_links_that_they_will_share(snapshot: PageSnapshot) -> None:
    """As many as there is room for, the soonest first, without names of users."""
    fabric, mix, [job] = snapshot.fabric, snapshot.mix, snapshot.pending
    assert fabric is not None and mix is not None and job.start is not None
    state = json.loads(ask(shown(snapshot), "/api/state.json")[2])
    (found,) = state["pending"]
    assert (found["job"], found["nodes"], found["switches"]) == ("41300", 4, 4)
    hosts = {t for host in job.hosts for t in fabric.hosts[host]}
    stay = {each.id for each in mix.jobs if hosts.isdisjoint(each.terminals.tolist())}
    assert all(set(users) <= stay for _, _, users in found["shared"])
    assert "ada" not in json.dumps(state)
    many = tuple(job._replace(id=str(n), start=job.start - n) for n in range(50))
    state = json.loads(ask(shown(replace(snapshot, pending=many)), "/api/state.json")[2])
    assert [each["job"] for each in state["pending"]] == [str(n) for n in range(49, 39, -1)]
    assert state["pending_total"] == 50
    strange = (
        job._replace(hosts=("away",)),
        job._replace(hosts=("away", job.hosts[0]), start=None),
    )
    state = json.loads(ask(shown(replace(snapshot, pending=strange)), "/api/state.json")[2])
    assert [(each["nodes"], each["links_shared"]) for each in state["pending"]] == [(0, 0), (1, 0)]


def test_nothing_comes_from_elsewhere_and_nothing_is_inline(snapshot: PageSnapshot) -> None:
    app = shown(snapshot)
    for path, (name, kind) in STATIC.items():
        status, headers, body = ask(app, path)
        assert (status, headers["Content-Type"]) == ("200 OK", kind)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert body == (STATIC_FOLDER / name).read_bytes()
        text = body.decode()
        assert not re.search(r"https?://|//[a-z]+\.|@import|innerHTML|insertAdjacentHTML", text)
        if name.endswith(".html"):
            assert not re.search(r"<style|\son\w+=|\sstyle=|<script>", text)
    assert {name for name, _ in STATIC.values()} == {file.name for file in STATIC_FOLDER.iterdir()}


@pytest.mark.parametrize(
    ("access", "more", "status"),
    [
        ("loopback", {}, 200),
        ("loopback", {"REMOTE_ADDR": "::1", "HTTP_HOST": "[::1]:9777"}, 200),
        ("loopback", {"REMOTE_ADDR": "::ffff:127.0.0.1", "HTTP_HOST": "localhost"}, 200),
        ("loopback", {"REMOTE_ADDR": "10.0.0.7"}, 403),
        ("loopback", {"HTTP_HOST": "evil.example:9777"}, 403),
        ("loopback", {"HTTP_HOST": ""}, 403),
        ("loopback", {"REMOTE_ADDR": "?"}, 403),
        ("loopback", {"HTTP_HOST": "127.0.0.1:"}, 200),
        ("loopback", {"HTTP_HOST": "[::1]evil.com"}, 403),
        ("loopback", {"HTTP_HOST": "[::1].evil.com:9777"}, 403),
        ("loopback", {"HTTP_HOST": "[::1"}, 403),
        ("loopback", {"HTTP_HOST": "127.0.0.1:80@evil.com"}, 403),
        ("loopback", {"HTTP_HOST": "127.0.0.1:x"}, 403),
        ("loopback", {"HTTP_HOST": "evil.com@127.0.0.1"}, 403),
        ("loopback", {"HTTP_HOST": "localhost/evil.com"}, 403),
        ("loopback", {"HTTP_HOST": "localhost\n"}, 403),
        ("loopback", {"HTTP_HOST": "127.0.0.1,evil.com"}, 403),
        ("any", {"HTTP_HOST": "sm:80:evil.com"}, 403),
        ("any", {"HTTP_HOST": "sm evil"}, 403),
        ("any", {"REMOTE_ADDR": "10.0.0.7", "HTTP_HOST": "10.0.0.1:9777"}, 200),
        ("any", {"REMOTE_ADDR": "10.0.0.7", "HTTP_HOST": "sm:9777"}, 200),
        ("any", {"REMOTE_ADDR": "10.0.0.7", "HTTP_HOST": "SM.cluster.:9777"}, 200),
        ("any", {"HTTP_HOST": "evil.example:9777"}, 403),
        ("any", {"HTTP_HOST": "sm.evil.example"}, 403),
        ("any", {"HTTP_HOST": ""}, 403),
        ("off", {}, 404),
        ("any", {"REQUEST_METHOD": "POST"}, 405),
        ("any", {"REQUEST_METHOD": "DELETE"}, 405),
    ],
)
def test_access_is_limited_to_the_configured_readers(
    access: Access,
    more: dict[str, str],
    status: int,
    snapshot: PageSnapshot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "sm.cluster")
    web_app._own_name.cache_clear()
    said, headers, body = ask(shown(snapshot, access), "/api/state.json", **more)
    assert said.startswith(str(status))
    assert "Content-Security-Policy" in headers
    assert (b"jobs" in body) == (status == 200)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/job.json", ""), ("/api/job.json", "job=none"), ("/api/job.json", "job=" + "9" * 400),
        ("/api/link.json", "link=-1"), ("/api/link.json", "link=99999999"),
        ("/api/link.json", "link=1e3"), ("/api/link.json", "link=" + "1" * 190),
        ("/api/job.json", "a=1&b=2&c=3"), ("/../pages.py", ""), ("/static/page.js", ""), ("", ""),
    ],
)  # fmt: skip
def test_unknown_paths_are_404(path: str, query: str, snapshot: PageSnapshot) -> None:
    assert ask(shown(snapshot), path, query)[0].startswith("404")


def test_the_same_is_not_sent_twice_and_texts_are_packed(snapshot: PageSnapshot) -> None:
    app = shown(snapshot)
    _, headers, body = ask(app, "/page.js", HTTP_ACCEPT_ENCODING="gzip, br")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == ask(app, "/page.js")[2]
    tag = ask(app, "/api/fabric.json")[1]["ETag"]
    status, _, body = ask(app, "/api/fabric.json", HTTP_IF_NONE_MATCH=tag)
    assert (status, body) == ("304 Not Modified", b"")
    state = ask(app, "/api/state.json")[1]["ETag"]
    app.pages.show(replace(snapshot, number=2))
    assert ask(app, "/api/state.json", HTTP_IF_NONE_MATCH=state)[0] == "200 OK"
    assert ask(app, "/api/fabric.json", HTTP_IF_NONE_MATCH=tag)[0].startswith("304")
    assert ask(app, "/", REQUEST_METHOD="HEAD")[2] == b""


def test_before_the_first_pass_there_is_a_page_without_links() -> None:
    app = WebApp(LivePages("test"), "loopback")
    state = json.loads(ask(app, "/api/state.json")[2])
    assert (state["at"], state["in_force"], state["jobs"]) == (0.0, None, [])
    for path in ("fabric", "loads", "job", "link"):
        assert ask(app, f"/api/{path}.json", f"{path}=1")[0].startswith("404")


def test_lost_links_are_named_until_their_ports_are_up() -> None:
    fabric = load_fabric(SPEC)
    lost = LostLinks()
    lost.see(fabric)
    assert lost.troubles() == ()
    up = int(np.flatnonzero(fabric.channel_source == 0)[0])
    lost.see(fabric.with_links_down([up]))
    (one,) = lost.troubles()
    assert one.sentence == f"1 link is down: {fabric.channel_name(up)}" and one.since > 0
    lost.see(fabric.with_links_down([up], [3]))
    (both,) = lost.troubles()
    assert both.sentence.startswith("2 links are down: ")
    assert both.sentence.endswith(f"-> host {fabric.terminal_host[3]}")
    lost.see(fabric.with_links_down([], [3]))
    assert [t.sentence.split(":")[0] for t in lost.troubles()] == ["1 link is down"]
    lost.see(fabric)
    assert lost.troubles() == ()
    lost.see(fabric.with_switches_down([fabric.switches - 1]))
    (gone,) = lost.troubles()
    assert gone.sentence == f"1 switch is down: {fabric.switch_name[-1]}"
    lost.see(fabric)
    assert lost.troubles() == ()


def test_healthy_links_are_not_lost_when_opensm_lists_switches_in_another_order() -> None:
    """OpenSM lists them in another order after each change; only the cut cable is named."""
    fabric = load_fabric(SPEC)
    s, t = np.arange(fabric.switches), np.arange(fabric.terminals)
    cut, random = fabric.with_links_down([0], [5]), np.random.default_rng(8)
    for _ in range(20):
        lost = LostLinks()
        for seen, down in ((fabric, 0), (cut, 2), (cut.with_links_down([9]), 3), (fabric, 0)):
            lost.see(in_order(seen, random.permutation(s), random.permutation(t)))
            said = [one.sentence for one in lost.troubles()]
            assert all(f"{down} links are down: " in one for one in said)
            assert bool(said) == bool(down)


def test_a_cable_that_was_moved_to_another_port_is_not_lost() -> None:
    fabric, lost = load_fabric(SPEC), LostLinks()
    free = fabric.switch_ports + 1
    for switch in (0, fabric.switches - 1):  # at either end
        lost.see(fabric)
        moved = int(np.flatnonzero(fabric.channel_source == switch)[-1])
        port = fabric.channel_port.copy()
        port[moved] = free[switch]
        lost.see(replace(fabric, channel_port=port))
        assert lost.troubles() == ()
    lost.see(fabric)
    port = fabric.terminal_switch_port.copy()
    port[3] = free[fabric.terminal_switch[3]]
    lost.see(replace(fabric, terminal_switch_port=port))
    assert lost.troubles() == ()


def world_state(world: World, agent: Agent) -> dict[str, Any]:
    app = WebApp(agent.observers["page"].pages, "loopback")
    found: dict[str, Any] = json.loads(ask(app, "/api/state.json")[2])
    return found


def test_the_page_follows_the_passes(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = world.agent
    agent.pass_once()
    state = world_state(world, agent)
    assert (state["snapshot"], state["result"], state["wrong"]) == (1, "installed", [])
    assert state["in_force"]["ours"] and state["in_force"]["routing"] == "sar-plus"
    assert state["in_force"]["lanes"] == "1"
    assert state["in_force"]["generation"] == state["decisions"][0]["generation"] > 0
    assert {job["job"] for job in state["jobs"]} == {"1", "2"}
    assert state["saved"] == {}
    assert state["measures"]["load_max"] == max(job["predicted"] for job in state["jobs"])
    world.source.records = JOBS[:1]
    world.cut()
    agent.pass_once()
    state = world_state(world, agent)
    assert [job["job"] for job in state["jobs"]] == ["1"]
    assert state["wrong"][0]["sentence"] == '1 link is down: "S1-0"[5] -> "S2-0"[1]'
    world.source.away = "squeue does not answer"
    agent.pass_once()
    wrong = [one["sentence"] for one in world_state(world, agent)["wrong"]]
    assert any("squeue does not answer" in sentence for sentence in wrong)
    first = world_state(world, agent)["wrong"]
    agent.pass_once()
    assert [o["since"] for o in world_state(world, agent)["wrong"]] == [o["since"] for o in first]


def test_an_error_in_the_page_fails_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)

    def broken(*_: object) -> None:
        raise RuntimeError("broken page")

    monkeypatch.setattr(world.agent.observers["page"].pages, "show", broken)
    assert world.agent.pass_once().ok
    assert world.value("sar_agent_unexpected_errors_total", where="page") == 1


def dripping(port: int, address: str, count: int) -> list[socket.socket]:
    """Clients that have sent the beginning of a request."""
    held = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port), 60, (address, 0))
        client.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        held.append(client)
    return held


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]])
def test_clients_that_dawdle_keep_no_scrape_away(addresses: list[str]) -> None:
    """Eight connections that sent a byte every 3 s once kept /metrics away. Here are
    more of them than places, on the scrape's own address and on others; half send no request, and
    half read no answer."""
    port, said = free_port(), list[str]()

    def scraped(environ: object, start: Any) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * 10_000_000 if len(said) else b"short"]

    server = http_server.serve_http("127.0.0.1", port, {"/metrics": scraped})
    held: list[socket.socket] = []
    try:
        for address in addresses:
            held += dripping(port, address, 150)
        assert scrape(port).startswith(b"HTTP/1.0 200 OK")
        said.append("long answers from now on")
        for client in held:
            with suppress(OSError):
                client.sendall(b"y\r\n\r\n")
        assert scrape(port).startswith(b"HTTP/1.0 200 OK")
    finally:
        for client in held:
            client.close()
        server.shutdown()
        server.server_close()
    assert wait_until(lambda: not server._waiting and not server._clients.of, 60)


def scrape(port: int) -> bytes:
    """All that /metrics answers."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        answer = b""
        while piece := client.recv(1 << 20):
            answer += piece
    return answer


def test_a_request_has_a_deadline_however_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.5)
    port = free_port()
    server = http_server.serve_http("127.0.0.1", port, {"/": lambda environ, start: []})
    [client] = dripping(port, "127.0.0.1", 1)

    def ended() -> bool:
        try:
            client.sendall(b"a")
        except OSError:
            return True
        return False

    assert wait_until(ended, 60)
    server.shutdown()
    server.server_close()
