"""The queue by slurmrestd: versions, tokens, and every kind of bad answer."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sar_agent.config.model import ConfigError, parse_config
from sar_agent.errors import Unavailable
from sar_agent.jobs.source import TellsNodes, job_source
from sar_agent.slurm.slurmrestd import VERSIONS, SlurmrestdSource
from tests.worlds.rude_server import rude_server, says

OLD = {"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]", "start_time": 5, "user_id": 9,
       "user_name": "ada", "partition": "batch", "comment": "sar:ring"}  # fmt: skip
NEW = {
    "job_id": 8,
    "job_state": ["RUNNING"],
    "nodes": "n3",
    "start_time": {"set": True, "infinite": False, "number": 6},
    "user_id": 9,
    "array_job_id": {"set": True, "infinite": False, "number": 8},
    "array_task_id": {"set": True, "infinite": False, "number": 0},
}
WAITS = {"job_id": 9, "job_state": ["PENDING"], "nodes": "", "scheduled_nodes": "n[4-5]"}


def token(**claims: Any) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part(claims)}.c2lnbmF0dXJl"


def answering(jobs: list[Any], version: str = VERSIONS[0], **more: Any) -> Callable[..., None]:
    body = json.dumps({"jobs": jobs, "errors": [], **more}).encode()

    def answer(text: str, peer: socket.socket) -> None:
        there = text.startswith(f"GET /slurm/{version}/")
        says("200 OK" if there else "404 NOT FOUND", body if there else b"no such")(text, peer)

    return answer


def source(url: str, file: Path | None = None, deadline: float = 20.0) -> SlurmrestdSource:
    return SlurmrestdSource(url, file, deadline)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_found_and_then_kept(version):
    with rude_server(answering([OLD, NEW, WAITS, {"job_id": 3}], version)) as server:
        rest = source(server.url)
        poll = rest.poll()
        assert [(r.id, r.hosts, r.start) for r in poll.records] == [
            ("7", ("n1", "n2"), 5.0),
            ("8_0", ("n3",), 6.0),
        ]
        assert [r.hosts for r in poll.planned] == [("n4", "n5")]
        assert poll.skipped == 1 and "job no. 4 of the list lacks 'job_state'" in poll.first_skipped
        asked = len(server.requests)
        assert rest.version == version and rest.poll() == poll
        assert len(server.requests) == asked + 1, "the version is known"


def test_a_server_that_is_upgraded_or_downgraded_is_asked_for_its_version_again():
    answers = [answering([OLD], "v0.0.38")]
    with rude_server(lambda text, peer: answers[-1](text, peer)) as server:
        rest = source(server.url)
        assert len(rest.poll().records) == 1
        answers.append(answering([OLD], "v0.0.41"))
        assert len(rest.poll().records) == 1 and rest.version == "v0.0.41"
        answers.append(answering([OLD], "v0.1.0"))
        with pytest.raises(Unavailable, match=r"none of the versions .* v0\.0\.38 to v0\.0\.44"):
            rest.poll()


def test_the_token_file_is_read_again_for_each_poll(tmp_path):
    file = tmp_path / "token"
    with rude_server(answering([OLD])) as server:
        rest = source(server.url, file)
        with pytest.raises(Unavailable, match=r"rest_token_file: .*token: no such file"):
            rest.poll()
        file.write_text("SLURM_JWT=" + token(sun="ada", exp=time.time() + 60) + "\n")
        rest.poll()
        assert "X-SLURM-USER-NAME: ada" in server.requests[-1]
        assert f"X-SLURM-USER-TOKEN: {token(sun='ada', exp=0)[:9]}" in server.requests[-1]
        file.write_text(token(sun="bob\r\nX-Evil: 1"))
        rest.poll()
        assert "Evil" not in server.requests[-1] and "USER-NAME" not in server.requests[-1]
        asked = len(server.requests)
        file.write_text(token(sun="ada", exp=86400))
        with pytest.raises(Unavailable, match=r"token: the token expired on 1970-01-0. ..:..; "):
            rest.poll()
        for text in ("Permission denied", "a.b", "a.b\r\nX: 1.c", "\x1b[31m"):
            file.write_text(text)
            with pytest.raises(Unavailable, match=r"holds no token|is empty"):
                rest.poll()
        assert len(server.requests) == asked, "none of these was sent"


LOAD = {"errors": [{"description": "Failed while looking for jobs", "error_number": -1}]}


def test_a_token_that_is_not_accepted_is_one_sentence_at_once(tmp_path):
    (tmp_path / "token").write_text(token(sun="ada"))
    with rude_server(says("401 UNAUTHORIZED", b"Authentication failure")) as server:
        with pytest.raises(Unavailable, match=r"a token that is valid \(Authentication failure\)"):
            source(server.url, tmp_path / "token").poll()
        assert len(server.requests) == 1, "asking again does not help"
    with rude_server(says("500 INTERNAL ERROR", json.dumps(LOAD).encode())) as server:
        why = r"HTTP 500 \(Failed while looking for jobs\): slurmctld does not .*token in .*refused"
        with pytest.raises(Unavailable, match=why):
            source(server.url, tmp_path / "token", 0.5).poll()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says("200 OK", b'{"jobs": [{"job_id": 1,'), "half an answer, or no JSON"),
        (says("200 OK", b"[" * 100000), "half an answer, or no JSON"),
        (says("200 OK", b'{"jobs": {}}'), "JSON without a list 'jobs'"),
        (says("200 OK", json.dumps({"jobs": [], **LOAD}).encode()), "Failed while looking"),
        (says("200 OK", b"<html>log in</html>"), "sent a web page"),
        (says("302 Found", b"", "Location: http://sso/"), "redirects to http://sso/"),
        (says("200 OK", b'{"jobs": [1, 2, "x"]}'), "3 of 3 jobs cannot be read"),
        (lambda _, peer: peer.close(), "broke off|does not answer"),
        (lambda _, peer: time.sleep(1), "no whole answer|broke off|does not answer"),
    ],
)
def test_a_bad_answer_is_one_sentence(answer, why):
    with rude_server(answer) as server, pytest.raises(Unavailable, match=why) as found:
        source(server.url, deadline=0.5).poll()
    assert "\n" not in str(found.value)


def test_nodes_that_have_a_job():
    nodes = [
        {"name": "n1", "state": "allocated", "partitions": ["batch"]},
        {"name": "n2", "state": ["IDLE"], "partitions": []},
    ]
    with rude_server(answering([], nodes=nodes)) as server:
        rest = source(server.url)
        assert isinstance(rest, TellsNodes)
        assert rest.allocated({"n1", "n2"}) == {"n1"}
        with pytest.raises(Unavailable, match="does not show n9"):
            rest.allocated({"n9"})


def test_the_settings():
    settings = parse_config('[slurm]\nsource = "slurmrestd"\nrest_url = "http://ctl:6820/"\n')
    assert isinstance(made := job_source(settings.slurm), SlurmrestdSource)
    assert made.url == "http://ctl:6820" and made.token_file is None
    for text, why in (
        ('source = "slurmrestd"', "needs rest_url; set it"),
        ('source = "file"', "needs jobs_file; set it"),
        ('rest_url = "ftp://x"', "write http://HOST:PORT"),
        ('rest_url = "http://me:secret@x"', "without user or query"),
        ('rest_token_file = "token"', "give an absolute path"),
    ):
        with pytest.raises(ConfigError, match=why):
            parse_config(f"[slurm]\n{text}\n")
