"""Counted weights in the simulator: the made-up cluster, the peers, and the numbers on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.counted.busy_cluster import SECONDS, busy_cluster, sent_shares
from sar_lab.counted.comparison import (
    BASELINE,
    COUNTED,
    FABRIC,
    compare_engines_over,
    counted_mix,
    run_times,
    summary,
    table,
)
from sar_lab.counted.flow_tables import counted_flows, flow_routes

RESEARCH = Path(__file__).parents[2] / "docs/research"
STORED = json.loads((RESEARCH / "counted-weights.json").read_text())
TREE = load_fabric(FABRIC)
CLUSTER = busy_cluster(TREE, 1)


def test_the_page_has_the_stored_numbers() -> None:
    assert STORED["fabric"] == FABRIC
    assert len(STORED["results"]) >= 6
    page = (RESEARCH / "counted-weights.md").read_text()
    assert "\n".join(table(STORED["results"])) in page
    assert f"{len(STORED['results'])} seeds" in page


def test_the_stored_numbers_are_those_of_today() -> None:
    """Of one seed, without what takes longest: sar and the adaptive peers."""
    stored = STORED["results"]["1"]
    sar_plus = load_engine("sar-plus").route(TREE, CLUSTER.mix, Options())
    seconds, slowdown = run_times(TREE, CLUSTER, sar_plus)
    assert summary(CLUSTER, slowdown) == pytest.approx(stored[BASELINE], rel=1e-6)
    weighed = counted_mix(TREE, CLUSTER, seconds)
    assert {job.weight for job in weighed.jobs} <= {1.0, 0.5, 0.25, 0.125, 0.0625}
    tables = {
        COUNTED: load_engine("sar-plus").route(TREE, weighed, Options()),
        "AFAR-like": flow_routes(TREE, counted_flows(TREE, CLUSTER)),
        "dfsssp": load_engine("dfsssp").route(TREE, CLUSTER.mix, Options()),
    }
    for name, routes in tables.items():
        _, slowdown = run_times(TREE, CLUSTER, routes)
        assert summary(CLUSTER, slowdown) == pytest.approx(stored[name], rel=1e-6), name


def test_the_cluster_is_what_the_page_says() -> None:
    jobs = CLUSTER.mix.jobs
    used = np.concatenate([job.terminals for job in jobs])
    assert len(used) == len(set(used.tolist())) > 0.8 * TREE.terminals
    storage = {int(place[0]) for place in CLUSTER.placement[len(jobs) :]}
    assert len(storage) == 8 and not storage & set(used.tolist())
    sending = sum(len(j.terminals) for j, s in zip(jobs, CLUSTER.senders, strict=True) if s)
    assert 0.25 * 0.9 <= sending / len(used) <= 0.5
    shares = sent_shares(TREE, CLUSTER, np.full(len(jobs), SECONDS))
    for job, sends in zip(jobs, CLUSTER.senders, strict=True):
        assert (shares[job.id] > 0.9) == sends, "senders send all the time, others seldom"
    again = busy_cluster(TREE, 1)
    assert again.mix == CLUSTER.mix and again.senders == CLUSTER.senders
    assert busy_cluster(TREE, 2).mix != CLUSTER.mix


def test_the_peer_s_tables_are_sound_and_spread_what_was_counted() -> None:
    sent = counted_flows(TREE, CLUSTER)
    verdict = check_routes(TREE, flow_routes(TREE, sent))
    assert not verdict.problems and verdict.deadlock_free
    two = np.zeros_like(sent)
    two[0, 20], two[0, 21] = 1.0, 1.0  # from one leaf switch to two hosts of another
    routes = flow_routes(TREE, two)
    assert routes.egress[0, 20, 0] != routes.egress[0, 21, 0], "over two links"


def test_results_are_written_seed_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {BASELINE: {"all": 2.0, "senders": 2.0, "others": 2.0, "worst": 2.0}}
    other = {COUNTED: {"all": 1.0, "senders": 1.0, "others": 3.0, "worst": 2.0}}
    monkeypatch.setattr(
        "sar_lab.counted.comparison.compare_engines_at", lambda *_: {**one, **other}
    )
    found = compare_engines_over([4, 5], tmp_path, lambda _: None)
    assert json.loads((tmp_path / "counted-weights.json").read_text()) == found
    assert (tmp_path / "counted-weights.png").stat().st_size > 1000
    assert list(table(found["results"]))[-1] == (
        f"| {COUNTED} | 1.00 (0.50 [0.50, 0.50]) | 1.00 (0.50 [0.50, 0.50]) "
        "| 3.00 (1.50 [1.50, 1.50]) | 2.00 (1.00 [1.00, 1.00]) |"
    )
    assert JobMix(tuple(replace(job, weight=1.0) for job in CLUSTER.mix.jobs)) == CLUSTER.mix
