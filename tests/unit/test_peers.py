"""Studies of peers: what the page shows is stored, and what is stored is computed again in part."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check.transition import Way
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.mixes.node_selection import first_fit
from sar_lab.papers.claims import Claim, verdict
from sar_lab.papers.outcome import ResultTable
from sar_lab.papers.registry import experiments, peer_studies
from sar_lab.papers.result_store import stored_result
from sar_lab.peers import dmodc_degraded, jigsaw_isolation, unsafe_updates
from sar_lab.peers.congestion_risk import TableWalk, random_permutations, shifts
from sar_lab.peers.isolating_placement import space_of
from sar_lab.peers.placed_queue import NodeSpace, run_placed
from tests.unit.test_cli import said, sar_agent

DOCS = Path(__file__).parents[2] / "docs" / "research"


OUR_EXPERIMENTS = ("adaptive-patterns", "herding", "isolation-pareto", "keys-beside-sar-plus")
PAGES = {
    "unsafe-updates": "unsafe-updates.md",
    **dict.fromkeys(OUR_EXPERIMENTS, "our-experiments.md"),
}
"""Studies with a page of their own."""


@pytest.mark.parametrize("name", list(peer_studies()))
def test_the_page_has_the_stored_tables_and_picture_of_each_study(name: str) -> None:
    page, row = (DOCS / PAGES.get(name, "peers.md")).read_text(), stored_result(DOCS, name)
    assert row is not None and (DOCS / row["picture"]).exists() and f"({row['picture']})" in page
    claims = [Claim(**claim) for claim in row["ours"]["claims"]]
    assert row["verdict"] == verdict(claims, row["ours"].get("because", ""))
    for table in row["ours"]["tables"]:
        assert "\n".join(ResultTable(table["head"], table["rows"]).lines()) in page
    assert f"`{row['command']} --out docs/research`" in page


def test_studies_are_listed_beside_the_papers() -> None:
    listed = said("lab", "list", "--json")
    names = {kind: {row["name"] for row in listed[kind]} for kind in ("experiments", "peers")}  # type: ignore[attr-defined]
    assert names == {"experiments": {*experiments()}, "peers": {*peer_studies()}}
    assert "\ndmodc-degraded " in sar_agent("lab", "list").stdout


def test_congestion_risk_by_hand() -> None:
    """Two leaves of two hosts under two spines; the lowest port of every leaf is one spine."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    hosts = np.arange(4, dtype=np.uint32)
    walk = TableWalk(fabric, load_engine("dmodk").route(fabric, JobMix(()), Options()))
    # Shift 1: 1 → 2 and 3 → 0; shift 2: all four cross, each spine carries one each way.
    assert walk.permutations(hosts, shifts(hosts)).tolist() == [1, 1, 1]
    # All to all: two sources and one destination on every link.
    assert walk.all_to_all(hosts) == 1
    routes = load_engine("dmodk").route(fabric, JobMix(()), Options())
    routes.egress[0, :2, 1], routes.egress[0, 2:4, 0] = 3, 3
    herd = TableWalk(fabric, routes)
    assert herd.permutations(hosts, shifts(hosts)).tolist() == [1, 2, 1]
    assert herd.all_to_all(hosts) == 2
    routes.egress[0, 2, 0] = 255
    with pytest.raises(ValueError, match="does not arrive"):
        TableWalk(fabric, routes).all_to_all(hosts)
    drawn = random_permutations(hosts, 5, 3)
    assert (np.sort(drawn, axis=1) == hosts).all() and (drawn != drawn[0]).any()


def test_damage_grows_in_one_order() -> None:
    whole = load_fabric("xgft:2;8,8;1,8")
    before = np.zeros(whole.channels, np.bool_)
    for dead in dmodc_degraded.DEAD:
        down = ~dmodc_degraded.damaged(whole, dead, 3).channel_up
        assert down.sum() == 2 * round(64 * dead / 100) and (down | before == down).all()
        before = down


def test_the_whole_tree_s_risks_are_those_of_the_page() -> None:
    row = stored_result(DOCS, dmodc_degraded.NAME)
    assert row is not None
    fabric = load_fabric(dmodc_degraded.SPEC)
    for engine in ("dmodc", "updn"):
        again = dmodc_degraded.risks_of(fabric, engine, 0)
        for table, pattern in zip(
            row["ours"]["tables"], ("shift", "random permutation", "all-to-all"), strict=True
        ):
            printed = {cells[0]: cells[1] for cells in table["rows"]}
            if pattern != "random permutation":
                assert printed[engine] == f"{again[pattern]:g}", (engine, pattern)


def test_a_queue_s_utilisation_and_isolation_again() -> None:
    """One queue of the page's six: isolated jobs keep everything, and the machine is less full."""
    fabric = load_fabric(jigsaw_isolation.SPEC)
    queue = jigsaw_isolation.queue_of(0)
    alone = run_placed(queue, space_of(fabric))
    packed = run_placed(queue, NodeSpace(np.ones(fabric.terminals, np.bool_), first_fit))
    used = [jigsaw_isolation.utilisation(ran, fabric.terminals) for ran in (alone, packed)]
    assert 0.85 < used[0] < used[1] < 1
    for some in jigsaw_isolation.running_at(alone)[:3]:
        held = [(s.leaf, spine) for job in some for s in job.place for spine in s.spines]
        assert len(set(held)) == len(held) and sum(job.size for job in some) <= fabric.terminals


def test_a_change_ends_one_job_and_starts_one_on_free_hosts() -> None:
    fabric = load_fabric("xgft:2;8,8;1,8")
    mixes = list(islice(unsafe_updates.job_changes(fabric, 1), 6))
    hosts = [{tuple(job.terminals.tolist()) for job in mix.jobs} for mix in mixes]
    for before, after in pairwise(hosts):
        assert before != after and len(before - after) <= 1 and len(after - before) <= 1
        taken = [t for job in after for t in job]
        assert len(set(taken)) == len(taken)


def test_changes_on_a_tree_with_dead_cables_are_direct() -> None:
    fabric = unsafe_updates.less_cables(load_fabric("xgft:2;6,6;1,6"), 10, 2)
    assert set(islice(unsafe_updates.from_scratch(fabric, 2), 4)) <= {Way.SAME, Way.DIRECT}
    assert set(islice(unsafe_updates.planned(fabric, 2), 4)) <= {Way.SAME, Way.DIRECT}
