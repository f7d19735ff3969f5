"""An agent on a machine without Slurm: no squeue, no slurm.conf, no topology.conf.

slurmrestd is all that it knows of jobs."""

from __future__ import annotations

import base64
import json
import random
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sar_agent.agent.build import build_agent
from sar_agent.config.model import parse_config
from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm import slurmrestd
from sar_agent.slurm.slurmrestd import VERSIONS
from tests.worlds.rude_server import RudeServer, reply, rude_server

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
HOSTS = sorted(load_fabric(EXAMPLES / "cluster.ibnetdiscover").job_ports)
MOST_MEMORY = 64 << 20
SHORT, LONG = 0.02, 60.0
"""Deadlines in seconds: an answer that is bad at once is asked for again until the deadline."""


def good(jobs: int) -> bytes:
    """The answer of a queue of so many jobs, each on hosts of several leaf switches."""
    queue = [
        {"job_id": n, "job_state": ["RUNNING"], "nodes": ",".join(HOSTS[n::5]), "start_time": 5,
         "user_id": 9, "user_name": "ada", "partition": "batch"}
        for n in range(1, jobs + 1)
    ]  # fmt: skip
    return json.dumps({"jobs": queue, "errors": []}).encode()


def hangs(server: RudeServer, peer: socket.socket) -> None:
    server.done.wait(1.0)


def endless(server: RudeServer, peer: socket.socket) -> None:
    """2 GB that are not announced."""
    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(2048):
        peer.sendall(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")


def sent(data: bytes) -> Callable[[RudeServer, socket.socket], None]:
    return lambda _, peer: peer.sendall(data)


HUGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n" + b"x" * 4096
NO_RIGHTS = json.dumps({"errors": [{"description": "Access denied", "error_number": 2002}]})
BAD: dict[str, tuple[Callable[[RudeServer, socket.socket], None], str]] = {
    "hang": (hangs, "no whole answer within"),
    "redirect": (sent(reply("302 Found", b"", "Location: http://sso/")), "redirects to http://sso"),
    "HTML": (sent(reply("200 OK", b"<html>sign in</html>")), "sent a web page"),
    "2 GB, announced": (sent(HUGE), "longer than 1 MiB"),
    "2 GB, not announced": (endless, "longer than 1 MiB|no whole answer"),
    "token without rights": (sent(reply("403 FORBIDDEN", NO_RIGHTS.encode())), "Access denied"),
    "token refused": (sent(reply("401 UNAUTHORIZED", b"Authentication failure")), "is valid"),
    "half an answer": (sent(reply("200 OK", good(3))[:-40]), "broke off after"),
    "no text": (sent(reply("200 OK", bytes(range(256)))), "half an answer, or no JSON"),
    "no jobs": (sent(reply("200 OK", b'{"jobs": [null, 1, [], {}]}')), "4 of 4 jobs cannot be"),
    "half a document": (sent(reply("200 OK", good(3)[:-40])), "half an answer, or no JSON"),
}


def token() -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sun': 'ada', 'exp': time.time() + 9e4})}.eA"


def test_an_agent_that_sees_no_slurm_file_only_slurmrestd_is_alive_after_1000_bad_answers(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "no-slurm.conf"))
    monkeypatch.setattr(slurmrestd, "MOST_BYTES", 1 << 20)
    (tmp_path / "token").write_text(token())
    answer = [sent(reply("200 OK", good(2)))]
    with rude_server(lambda text, peer: answer[0](server, peer)) as server:
        agent = build_agent(
            parse_config(
                f"""
                [agent]
                engine = "minhop"
                state_dir = "{tmp_path}/state"
                run_dir = "{tmp_path}/run"
                metrics_address = ""
                [slurm]
                source = "slurmrestd"
                rest_url = "{server.url}"
                rest_token_file = "{tmp_path}/token"
                topology_conf = ""
                [fabric]
                file = "{EXAMPLES}/cluster.ibnetdiscover"
                [opensm]
                plugin_socket = "{tmp_path}/no-such.sock"
                lfts_dump = "{EXAMPLES}/opensm-lfts.dump"
                """
            )
        )
        source, queue = agent.observer.source, agent.observer.queue
        source.deadline = LONG
        assert agent.pass_once().ok and len(queue.value) == 2
        threads, draw, kinds = threading.active_count(), random.Random(7), list(BAD)
        most = 0
        tracemalloc.start()
        try:
            for number in range(1000):
                # Each kind in turn, then as they come.
                kind = kinds[number] if number < len(kinds) else draw.choice(kinds)
                answer[0], why = BAD[kind][0], BAD[kind][1]
                source.deadline = SHORT
                before = len(server.requests)
                tracemalloc.reset_peak()  # a pass may compile kernels, which takes more
                held = tracemalloc.get_traced_memory()[0]
                assert not agent.observer.poll_queue(), kind
                most = max(most, tracemalloc.get_traced_memory()[1] - held)
                assert "\n" not in queue.problem and len(queue.problem) < 1000
                if number < len(kinds):
                    # With time to answer, each has its own sentence; a hang has no other.
                    source.deadline = SHORT if kind == "hang" else 1.0
                    assert not agent.observer.poll_queue()
                    assert any(one in queue.problem for one in why.split("|")), queue.problem
                    assert agent.pass_once().ok, "the pass goes on with the last queue"
                assert len(queue.value) == 2 and len(server.requests) >= before
            assert most < MOST_MEMORY
        finally:
            tracemalloc.stop()
        answer[0] = sent(reply("200 OK", good(3)))
        source.deadline = LONG
        assert agent.pass_once().ok and queue.problem == "" and len(queue.value) == 3
        assert any(VERSIONS[0] in text for text in server.requests)
        deadline = time.monotonic() + 60
        while threading.active_count() > threads + 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threading.active_count() <= threads + 2, "no thread is left for each answer"
