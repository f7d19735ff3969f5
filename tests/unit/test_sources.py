"""slurmrestd and pyslurm against stand-ins; tests/live/test_sources.py has the real slurmrestd.

No pyslurm can be installed where this project is tested (it demands the exact libslurm), so the
module here is a fake: it holds the source to what pyslurm 25.11's `Jobs.load()` is documented to
give, its quirk of None for 0 included. It is no proof that a real one works.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sar_agent.config.model import parse_config
from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import job_source
from sar_agent.slurm.pyslurm_source import PyslurmSource
from sar_agent.slurm.slurmrestd import SlurmrestdSource
from sar_agent.slurm.squeue import SqueueSource
from sar_agent.slurm.squeue_json import parse_squeue_json


class PyslurmError(Exception):
    """As pyslurm names it."""


def a_job(id: int, **more: Any) -> SimpleNamespace:
    """pyslurm's Job, as far as we read it: None is given for a 0, and where there is nothing."""
    given = {
        "allocated_nodes": "n[1-2]",
        "state": "RUNNING",
        "user_id": 1000,
        "user_name": "alice",
        "partition": "batch",
        "start_time": 1795221989,
        "comment": None,
        "admin_comment": None,
        "array_id": None,
        "array_task_id": None,
        "heterogeneous_id": None,
        "heterogeneous_offset": None,
    }
    return SimpleNamespace(id=id, **(given | more))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """A fake module `pyslurm`; the mapping is what `Jobs.load()` gives."""
    jobs: dict[int, Any] = {}

    def load() -> dict[int, Any]:
        if -1 in jobs:
            raise PyslurmError("Unable to contact slurm controller (connect failure)")
        return dict(jobs)

    module = ModuleType("pyslurm")
    module.Jobs = SimpleNamespace(load=load)  # type: ignore[attr-defined]
    module.PyslurmError = PyslurmError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyslurm", module)
    return jobs


def test_pyslurm_s_jobs_are_those_of_squeue(queue: dict[int, Any]) -> None:
    queue[7] = a_job(7, comment="x sar:ring", admin_comment="sar:bitcomp")
    queue[8] = a_job(8, state="PENDING", allocated_nodes=None, start_time=None)
    queue[9] = a_job(9, array_id=9, array_task_id=3)
    queue[10] = a_job(10, array_id=9, array_task_id=None)
    queue[20] = a_job(20, heterogeneous_id=20, allocated_nodes="n3", user_name=None, user_id=0)
    queue[21] = a_job(21, heterogeneous_id=20, heterogeneous_offset=1, allocated_nodes="n[4-5]")
    queue[30] = a_job(30, state="COMPLETING")
    start = 1795221989.0
    alice: Any = {"user": "alice", "partition": "batch", "start": start, "uid": 1000}
    assert PyslurmSource().poll().records == (
        JobRecord("7", ("n1", "n2"), "RUNNING", traffic="bitcomp", raw=("7",), **alice),
        JobRecord("9_3", ("n1", "n2"), "RUNNING", raw=("9",), **alice),
        JobRecord("9_0", ("n1", "n2"), "RUNNING", raw=("10",), **alice),
        JobRecord("20", ("n3", "n4", "n5"), "RUNNING", "0", "batch", start, None, 0, ("20", "21")),
    )


def test_pyslurm_away_and_nonsense(queue: dict[int, Any]) -> None:
    source = PyslurmSource()
    assert source.poll().records == ()
    queue.update({1: a_job(1), 2: a_job(2), 3: SimpleNamespace(id=3)})
    poll = source.poll()
    assert (len(poll.records), poll.skipped) == (2, 1)
    assert "allocated_nodes" in poll.first_skipped
    del queue[1], queue[2]
    with pytest.raises(Unavailable, match="1 of 1 entries that are not jobs"):
        source.poll()
    queue[-1] = None
    with pytest.raises(Unavailable, match="Unable to contact slurm controller"):
        source.poll()


def test_a_libslurm_that_ends_the_process_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = "import os, sys\nprint('fatal: no slurm.conf', file=sys.stderr)\nos._exit(1)\n"
    (tmp_path / "pyslurm.py").write_text(code)
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"importing pyslurm fails \(fatal: no slurm.conf\)"):
        PyslurmSource()


@pytest.mark.parametrize("module", [None, ModuleType("pyslurm")])
def test_no_pyslurm_or_an_old_one_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", module)
    with pytest.raises(InputError, match=r"sar-agent\[pyslurm\]"):
        PyslurmSource()


class Rest:
    """A slurmrestd that serves v0.0.38 only, or fails as told."""

    def __init__(self, folder: Path) -> None:
        self.path, self.status, self.body = folder / "rest.sock", 200, b'{"jobs": []}'
        self.asked: list[tuple[str, str | None, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                get = self.headers.get
                outer.asked.append((self.path, get("X-SLURM-USER-NAME"), get("X-SLURM-USER-TOKEN")))
                known = self.path == "/slurm/v0.0.38/jobs"
                self.send_response(outer.status if known else 404)
                self.end_headers()
                if known:
                    self.wfile.write(outer.body)

            def address_string(self) -> str:
                return "unix"

            def log_message(self, *words: object) -> None:
                pass

        self.server = socketserver.ThreadingUnixStreamServer(str(self.path), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Rest]:
    made = Rest(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


JOBS = json.dumps({"jobs": [{"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]"}]}).encode()


def test_slurmrestd_s_newest_version_is_found_once(rest: Rest) -> None:
    rest.body = JOBS
    source = SlurmrestdSource(rest.path)
    assert source.poll().records == parse_squeue_json(JOBS.decode())
    tried = len(rest.asked)
    assert tried > 1 and rest.asked[-1] == ("/slurm/v0.0.38/jobs", None, None)
    source.poll()
    assert len(rest.asked) == tried + 1


def test_a_token_is_read_at_each_poll(rest: Rest, tmp_path: Path) -> None:
    token = tmp_path / "token"
    source = SlurmrestdSource(rest.path, "sar", token)
    with pytest.raises(Unavailable, match="JWT cannot be read"):
        source.poll()
    token.write_text("SLURM_JWT=first\n")
    source.poll()
    assert rest.asked[-1][1:] == ("sar", "first")
    token.write_text("second")
    source.poll()
    assert rest.asked[-1][1:] == ("sar", "second")


def test_slurmrestd_in_trouble_is_one_sentence(rest: Rest, tmp_path: Path) -> None:
    rest.status = 401
    with pytest.raises(Unavailable, match=r"does not authenticate the agent .*jwt_file"):
        SlurmrestdSource(rest.path).poll()
    rest.status, rest.body = 500, b"<html>slurmctld is away"
    with pytest.raises(Unavailable, match="HTTP 500: <html>slurmctld is away"):
        SlurmrestdSource(rest.path, deadline=0.5).poll()
    rest.status = 404
    with pytest.raises(Unavailable, match=r"no /jobs of v0\.0\.36 to"):
        SlurmrestdSource(rest.path, deadline=0.5).poll()
    rest.status, rest.body = 200, b"no JSON"
    with pytest.raises(Unavailable, match="not JSON"):
        SlurmrestdSource(rest.path).poll()
    with pytest.raises(Unavailable, match="does not answer"):
        SlurmrestdSource(tmp_path / "none", deadline=0.5).poll()


def test_the_settings_name_the_source(rest: Rest, queue: dict[int, Any]) -> None:
    def source(text: str) -> Any:
        return job_source(parse_config(f"[slurm]\n{text}").slurm)

    assert isinstance(source(""), SqueueSource)
    assert isinstance(source('source = "pyslurm"'), PyslurmSource)
    found = source(f'source = "slurmrestd"\nslurmrestd_socket = "{rest.path}"\n')
    assert isinstance(found, SlurmrestdSource)
    assert (found.path, found.jwt_file) == (rest.path, None)
