"""Where no repair serves, OpenSM's routing waits for the agent's routes, for a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sar_agent.formats.routes_file import write_routes_file
from sar_agent.opensm.plugin_client import PluginRefused
from tests.worlds.live.sanitized import assert_clean, sanitized
from tests.worlds.live.site import Site, site

pytestmark = pytest.mark.live
CUT = frozenset({("leaf0", 5)})


@dataclass
class Called:
    """Generation 5, which has no certificate, is in force; a client listens."""

    here: Site
    call: Future[int]

    def cut(self) -> int:
        """A dead cable makes the routes stale; returns the number of the call."""
        self.here.fabric.unlink(*next(iter(CUT)))
        self.here.sm.sweep()
        return self.call.result(60)

    def engines(self) -> int:
        """How often OpenSM went on to the next engine since it started."""
        return self.here.sm.log().count("the next routing engine takes over")


@contextmanager
def called(wait: int = 10, **opensm: Any) -> Iterator[Called]:
    opensm |= {"routing_engine": "sar,updn", "more_plugin_options": f"repair_wait={wait}"}
    with site(**opensm) as here, ThreadPoolExecutor(1) as pool:
        here.load(here.tree.routes(5))
        call = pool.submit(here.bridge.await_call, 0)
        here.wait(lambda s: s.listening == 1)
        yield Called(here, call)
        here.sm.stop()  # ends `await`


def answered(site: Called) -> None:
    here, before = site.here, site.engines()
    old = here.bridge.fabric().digest
    number = site.cut()
    status = here.bridge.status()
    assert (status.state, status.engine_in_force, status.settled) == ("waiting", "sar", True)
    # OpenSM's lock is taken, and yet its tables and its fabric can be read.
    dumped = here.bridge.dump()
    assert np.array_equal(here.dumped().forwarding, here.tree.routes(5).forwarding)
    assert here.bridge.fabric().digest != old
    routes = here.tree.routes(6, cut=CUT)
    write_routes_file(here.sm.next_path, routes)
    with pytest.raises(PluginRefused, match="generation 5 stays in force") as refused:
        here.bridge.load(6, "0" * 16)
    assert refused.value.code == "changed"
    assert here.bridge.status().state == "waiting", "another load may come"
    assert here.bridge.load(6, dumped.digest).generation_in_force == 6
    here.assert_in_force(routes)
    status = here.wait(lambda s: s.settled)
    assert (status.engine_in_force, status.last_error) == ("sar", "")
    assert (status.repair_calls, status.repair_calls_answered) == (number, 1)
    assert site.engines() == before
    with pytest.raises(PluginRefused, match="no routing waits in call"):
        here.bridge.decline(number)


def test_a_load_within_the_call_is_installed_and_no_other_engine_routes() -> None:
    with called() as site:
        answered(site)


def test_no_sanitizer_complains_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with called(**sanitized(monkeypatch)) as site:
        answered(site)
        site.here.sm.stop()
        said = site.here.sm.output()
    assert_clean(said)


def test_where_nobody_answers_the_next_engine_routes() -> None:
    with called(wait=1) as site:
        site.cut()
        status = site.here.wait(lambda s: s.engine_in_force == "updn" and s.settled)
        # OpenSM may have routed once more since: then it has asked again, or nobody listened.
        assert "the agent was asked and sent no routes within 1." in site.here.sm.log()
        assert status.repair_calls > 0 and status.repair_calls_answered == 0
        dumped = site.here.bridge.dump()  # the usual way again
        write_routes_file(site.here.sm.next_path, site.here.tree.routes(6, cut=CUT))
        assert site.here.bridge.load(6, dumped.digest).engine_in_force == "sar"


def test_an_agent_without_routes_ends_the_wait() -> None:
    with called() as site:
        number = site.cut()
        with pytest.raises(PluginRefused, match="no routing waits"):
            site.here.bridge.decline(number + 1)
        site.here.bridge.decline(number)
        site.here.wait(lambda s: s.engine_in_force == "updn" and s.settled)
        assert "the agent was asked and has no routes either" in site.here.sm.log()


@pytest.mark.parametrize("wait", [0, 10])
def test_nobody_is_waited_for_who_does_not_listen(wait: int) -> None:
    opensm = {"routing_engine": "sar,updn", "more_plugin_options": f"repair_wait={wait}"}
    with site(**opensm) as here:
        here.load(here.tree.routes(5))
        here.fabric.unlink(*next(iter(CUT)))
        here.sm.sweep()
        status = here.wait(lambda s: s.engine_in_force == "updn" and s.settled)
        why = "no agent listens" if wait else "the agent is not asked (repair_wait=0)"
        assert why in status.last_error and status.repair_calls == 0
