"""The baseline: the tables that the first install replaced, and what takes their place."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sar_agent.agent.first_tables import NAME
from sar_agent.agent.outcome import Result
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.worlds.agent_world import World


def of_site(world: World, engine: str = "dfsssp") -> Routes:
    """OpenSM routes with tables that none of the agent's baselines makes by itself."""
    routes = load_engine(engine).route(world.fabric, JobMix(()), Options())
    egress = routes.egress.copy()
    up = egress[0, : world.fabric.terminals]
    turned = np.where(up == 5, 6, np.where(up == 6, 5, up))  # each leaf's two ways up, exchanged
    on_leaf = np.flatnonzero(world.fabric.terminals_at)
    egress[0, : world.fabric.terminals, on_leaf] = turned[:, on_leaf].T
    world.bridge.tables = routes_to_file(
        world.fabric, Routes("updn", world.fabric.digest, egress), 1
    )
    world.bridge.engine = "updn"
    world.bridge._routed()
    return Routes("updn", world.fabric.digest, egress)


def baseline(world: World) -> Routes | None:
    found = world.agent.baseline.measured
    return found.traffic.routes if found else None


def live(world: World) -> None:
    """The first install, and a pass that changes nothing."""
    assert world.once().result is Result.INSTALLED
    assert world.once().result is Result.NOTHING


def test_the_baseline_are_the_tables_before_the_first_install(tmp_path: Path) -> None:
    world = World(tmp_path)
    theirs = of_site(world)
    live(world)
    found = baseline(world)
    assert found and found.engine == "updn"
    assert (found.egress == theirs.egress).all()
    minhop = load_engine("minhop").route(world.fabric, JobMix(()), Options())
    assert (found.egress != minhop.egress).any(), "else this test shows nothing"
    world.restart()
    world.once()
    again = baseline(world)
    assert again and (again.egress == theirs.egress).all(), "kept over a restart"


def test_nothing_is_compared_before_the_first_install(tmp_path: Path) -> None:
    world = World(tmp_path, mode="observe")
    of_site(world)
    for _ in range(2):
        world.once()
    assert baseline(world) is None and not (tmp_path / "state" / NAME).exists()


def test_on_another_fabric_minhop_takes_their_place(tmp_path: Path) -> None:
    world = World(tmp_path)
    of_site(world)
    live(world)
    world.cut()
    for _ in range(3):
        world.once()
    found = baseline(world)
    minhop = load_engine("minhop").route(world.fabric, JobMix(()), Options())
    assert found and found.engine == "minhop" and (found.egress == minhop.egress).all()


def test_after_an_earlier_install_nothing_is_kept(tmp_path: Path) -> None:
    """The state is lost, and OpenSM routes by itself: what it has may come from our tables."""
    for lost in (("state.json",), ("state.json", "generations")):
        folder = tmp_path / str(len(lost))
        folder.mkdir()
        world = World(folder)
        live(world)
        state = folder / "state"
        (state / NAME).unlink()
        for name in lost:
            if (state / name).is_dir():
                for each in (state / name).iterdir():
                    each.unlink()
            else:
                (state / name).unlink()
        of_site(world)
        world.restart()
        live(world)
        assert not (state / NAME).exists(), lost
        found = baseline(world)
        assert found and found.engine == "minhop"


def test_a_later_install_leaves_them_as_they_are(tmp_path: Path) -> None:
    world = World(tmp_path)
    of_site(world)
    live(world)
    kept = (tmp_path / "state" / NAME).read_bytes()
    world.source.records = world.source.records[:1]
    for _ in range(3):
        world.once()
    assert (tmp_path / "state" / NAME).read_bytes() == kept
    assert read_routes_file(tmp_path / "state" / NAME).engine == "updn"


def test_a_damaged_file_is_no_baseline(tmp_path: Path) -> None:
    world = World(tmp_path)
    of_site(world)
    live(world)
    (tmp_path / "state" / NAME).write_bytes(b"noise")
    world.restart()
    world.once()
    found = baseline(world)
    assert found and found.engine == "minhop"
