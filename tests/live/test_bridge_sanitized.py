"""One walk through all that the plugin does inside a real OpenSM, under ASan and UBSan."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from sar_agent.errors import SarError
from sar_agent.fabric.opensm_file import read_opensm_fabric
from tests.worlds.live.sanitized import assert_clean, sanitized
from tests.worlds.live.site import site

pytestmark = pytest.mark.live
LINEAR_FORWARDING_TABLE = 25


def test_no_sanitizer_complains(monkeypatch: pytest.MonkeyPatch) -> None:
    with site(**sanitized(monkeypatch)) as here:
        for generation in range(1, 5):
            here.load(here.tree.routes(generation, shift=generation, lanes=2, offsets=2))
        here.fabric.drop("leaf3", 100, LINEAR_FORWARDING_TABLE)
        with pytest.raises(SarError, match="not confirmed"):
            here.load(here.tree.routes(4, shift=1, lanes=2, offsets=2))
        assert here.dumped().had is not None
        here.fabric.drop("leaf3", 0)
        here.load(here.tree.routes(4, shift=4, lanes=2, offsets=2))
        here.assert_in_force(here.tree.routes(4, shift=4, lanes=2))
        here.tool("saquery", "PR", "--slid", "1", "--dlid", "5")
        here.sm.next_path.write_bytes(b"SARROUTE" * 100)
        with pytest.raises(SarError, match="invalid"):
            here.bridge.load(5, None)
        here.fabric.unlink("leaf0", 5)
        here.wait(lambda s: s.engine_in_force == "dfsssp")
        here.fabric.relink("leaf0", 5)
        here.wait(lambda s: s.settled)  # routes in several lanes come back by a load alone
        os.kill(here.sm.pid, signal.SIGUSR2)
        here.bridge.dump()
        assert read_opensm_fabric(here.bridge.fabric().path).fabric.terminals == 16
        assert here.bridge.notice("unpath", 1, 4).subscribed == 0
        with contextlib.suppress(SarError):
            here.load(here.tree.routes(9))
        here.sm.stop()
        said = here.sm.output()
    assert_clean(said)
