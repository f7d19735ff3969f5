"""The client of the plugin's socket, against a stand-in that says what the test wants."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from tests.worlds.fake_opensm import STATUS


class StandIn:
    """Listens like the plugin; `answers` are given one a connection, the last one for ever."""

    def __init__(self, path: Path) -> None:
        self.path, self.requests = path, list[str]()
        self.answers: list[bytes] = [json.dumps(STATUS).encode() + b"\n"]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self.requests.append(client.makefile().readline())
                client.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[StandIn]:
    stand_in = StandIn(tmp_path / "bridge.sock")
    yield stand_in
    stand_in.close()


def test_the_plugin_answers_the_names_that_the_agent_reads() -> None:
    """The table in opensm_bridge/status.c, and `PluginStatus`."""
    table = (Path(__file__).parents[2] / "opensm_bridge/status.c").read_text()
    fields = dict(re.findall(r"\tFIELD\((\w+), (\w+), ", table))
    types = {"number": int, "real": float, "truth": bool, "text": str}
    said = {name: types[kind] for name, kind in fields.items()}
    read = PluginStatus.model_fields
    assert said.keys() == read.keys()
    # `protocol` and `state` are literals.
    plain = {name for name, field in read.items() if field.annotation in types.values()}
    assert read.keys() - plain == {"protocol", "state"}
    assert {said[name] for name in plain} == set(types.values())
    assert all(said[name] is read[name].annotation for name in plain)


def test_status_is_asked_again_after_a_cut_answer(plugin: StandIn) -> None:
    plugin.answers = [b'{"protocol":2', *plugin.answers]
    assert PluginClient(plugin.path).status().switches == 6
    assert len(plugin.requests) == 2


@pytest.mark.parametrize("answer", [b"hello\n", b"{}\n", b'{"protocol":2}\n', b""])
def test_garbage_is_unavailable_and_names_the_socket(plugin: StandIn, answer: bytes) -> None:
    plugin.answers = [answer]
    with pytest.raises(Unavailable, match=r"bridge\.sock: not an answer"):
        PluginClient(plugin.path).status()


def test_a_plugin_of_another_release_is_said_at_once(plugin: StandIn) -> None:
    plugin.answers = [json.dumps(STATUS | {"protocol": 1}).encode() + b"\n"]
    with pytest.raises(Unavailable, match="plugin speaks protocol 1, this agent 2; install both"):
        PluginClient(plugin.path).status()
    assert plugin.requests == ["status\n"]


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no\.sock: .*No such file.*event_plugin_name"):
        PluginClient(tmp_path / "no.sock").load(1, None)


def test_a_load_is_sent_once_even_when_the_answer_is_cut(plugin: StandIn) -> None:
    plugin.answers = [b'{"ok":true']
    with pytest.raises(Unavailable):
        PluginClient(plugin.path).load(7, "0123456789abcdef")
    assert plugin.requests == ["load 7 0123456789abcdef\n"]


def test_settled_is_built_and_confirmed(plugin: StandIn) -> None:
    def said(**change: object) -> PluginStatus:
        plugin.answers = [json.dumps(STATUS | change).encode() + b"\n"]
        return PluginClient(plugin.path).status()

    assert said().settled
    assert not any(said(state=s).settled for s in ("starting", "asked", "building", "sending"))
    for name in STATUS:
        assert not name.startswith("unconfirmed") or not said(**{name: 1}).settled


def test_a_notice_is_sent_once_with_both_numbers(plugin: StandIn) -> None:
    plugin.answers = [b'{"ok":true,"subscribed":3}\n']
    assert PluginClient(plugin.path).notice("unpath", 2**64 - 1, 12).subscribed == 3
    assert plugin.requests == ["notice unpath 18446744073709551615 12\n"]
