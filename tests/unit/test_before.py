"""Which tables are assumed where none were given, and OpenSM's answers that are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import Unavailable, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.before import assumed_engine
from sar_lab.opensm_tables import asked as asking

TREE = load_fabric("xgft:2;4,6;1,3")
NOBODY = JobMix(())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The fabrics for which a stand-in for OpenSM was asked; it answers with our ftree's tables."""
    found: list[str] = []

    def answer(fabric: Fabric, engine: str, options: object, seconds: float) -> Routes:
        found.append(fabric.name)
        if "torus" in fabric.name:
            raise Unserved("OpenSM's ftree refuses this fabric")
        return load_engine(engine).route(fabric, NOBODY, Options())

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SAR_ASK_OPENSM")
    monkeypatch.setattr(asking, "simulated_routes", answer)
    monkeypatch.setattr(asking, "find_program", lambda name, _: __file__)
    monkeypatch.setattr(asking, "umad2sim", lambda: Path())
    return found


def test_ftree_is_assumed_only_where_openSM_serves_the_fabric(asked: list[str]) -> None:
    assert assumed_engine(TREE).engine == "opensm-ftree"
    refused = assumed_engine(load_fabric("torus:3x3"))
    assert refused.engine == "minhop" and "refuses" in refused.why


def test_an_answer_is_kept_whatever_the_order_of_the_file(asked: list[str], tmp_path: Path) -> None:
    first = load_engine("opensm-ftree").route(TREE, NOBODY, Options())
    write_ibsim_net(TREE, tmp_path / "net")
    blocks = (tmp_path / "net").read_text().split("\n\n")
    turned = read_ibsim_net("\n\n".join(reversed(blocks)))
    assert turned.digest == TREE.digest
    assert not np.array_equal(turned.switch_guid, TREE.switch_guid)
    again = load_engine("opensm-ftree").route(turned, NOBODY, Options())
    assert len(asked) == 1, "the second answer is the first"

    def named(fabric: Fabric, routes: Routes) -> dict[tuple[int, int], int]:
        return {
            (int(to), int(at)): int(routes.egress[0, t, s])
            for t, to in enumerate(fabric.terminal_guid)
            for s, at in enumerate(fabric.switch_guid)
        }

    assert named(TREE, first) == named(turned, again)


def test_a_refusal_is_kept(asked: list[str]) -> None:
    for _ in range(2):
        assert assumed_engine(load_fabric("torus:3x3")).engine == "minhop"
    assert len(asked) == 1


def test_a_damaged_answer_is_asked_for_again(asked: list[str], tmp_path: Path) -> None:
    assumed_engine(TREE)
    (kept,) = (tmp_path / "sar-agent" / "opensm").iterdir()
    kept.write_bytes(kept.read_bytes()[:40])
    assert assumed_engine(TREE).engine == "opensm-ftree"
    assert len(asked) == 2


def test_an_OpenSM_that_does_not_answer_leaves_its_default(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> Routes:
        raise Unavailable("no answer within 60 s")

    monkeypatch.setattr(asking, "simulated_routes", silent)
    engine, why = assumed_engine(TREE)
    assert engine == "minhop" and "was not asked" not in why and "no answer within 60 s" in why


def test_nobody_is_asked_against_the_users_will(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAR_ASK_OPENSM", "no")
    engine, why = assumed_engine(TREE)
    assert engine == "minhop" and "SAR_ASK_OPENSM" in why and not asked
