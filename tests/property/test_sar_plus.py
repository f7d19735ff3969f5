"""sar-plus, from scratch and step by step: a template, and few exceptions to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import multi_switch_mix, synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import encode
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality import bounds_of, measure
from sar_agent.routing import Options, PreviousRoutes, Routes, job_loads
from sar_agent.routing.excepted_tables import ExceptedTables
from sar_agent.routing.job_loads import JobLoads, thin_subtrees
from sar_agent.routing.sar_plus import WORTH, SarPlus
from sar_agent.routing.template import Template, nearest_template, template_of
from sar_lab.fluid import PATTERNS, job_times
from tests.bench.queue import Queue
from tests.examples import examples
from tests.worlds.job_histories import job_history
from tests.worlds.networks import fabrics, networks
from tests.worlds.odd_trees import degraded

OBJECTIVES = ("load", "routes")
TREES = ("xgft:2;3,4;1,3", "xgft:2;4,3;1,2", "xgft:3;2,3,3;1,2,2", "xgft:3;3,2,4;1,3,2")
NOBODY = JobMix(())


def as_routes(template: Template) -> Routes:
    return Routes("template", template.fabric.digest, template.egress[None])


def used_by_jobs(fabric: Fabric, mix: JobMix, routes: Routes) -> Iterator[tuple[int, int]]:
    """(destination, switch): entries over which a job sends."""
    channel = routes.next_channel(fabric)
    for job in mix.jobs:
        leaves = set(fabric.terminal_switch[job.terminals].tolist())
        for d in job.terminals.tolist():
            for leaf in leaves:
                v = leaf
                while v != fabric.terminal_switch[d] and (c := channel[d, v]) >= 0:
                    yield d, v
                    v = int(fabric.channel_target[c])


def knows_its_loads(mix: JobMix, routes: Routes, engine: SarPlus) -> None:
    """The loads that the engine keeps are those of a full count, and of the measures."""
    assert engine._last is not None
    loads, template = engine._last.tables.loads, engine._last.tables.template
    fabric = template.fabric
    found = measure(fabric, mix, routes)
    again = JobLoads(template.fabric, template.graph, template.cache, mix, loads.objective)
    again.carry(routes.egress[0], again.terminals)
    assert np.array_equal(loads.paths.units, again.paths.units)
    assert np.array_equal(loads.paths.load, again.paths.load)
    if loads.objective == "routes":
        assert np.array_equal(loads.paths.units, found.channel_efi)
    else:
        assert np.allclose(loads.paths.load, found.channel_load, rtol=0, atol=1e-5)


def follow(fabric: Fabric, seed: int, steps: int, objective: str, tree: bool) -> None:
    """One history, step by step; at its end all jobs end."""
    engine, options = SarPlus(), Options(objective=objective)  # type: ignore[arg-type]
    before: PreviousRoutes | None = None
    broken = False
    for now, mix in job_history(fabric, Random(seed), steps):
        template = template_of(now)
        if before is None:
            routes = engine.route(now, mix, options)
        else:
            kept = before.routes.egress.copy()
            routes = engine.reroute(before, now, mix, options)
            # An engine without memory (a restart) comes to the same tables.
            assert np.array_equal(
                SarPlus().reroute(before, now, mix, options).egress, routes.egress
            )
            assert np.array_equal(before.routes.egress, kept)
        knows_its_loads(mix, routes, engine)
        no_worse_than_the_template(now, mix, routes, options)
        verdict = check_routes(now, routes)
        assert verdict.unreachable_pairs == 0
        if tree and check_routes(now, as_routes(template)).passed:
            assert verdict.passed and verdict.virtual_lanes == 1
        template = nearest_template(now, routes.egress[0])
        broken |= before is not None and before.fabric.digest != now.digest
        if not broken:  # what a failure moved stays while jobs run
            excepted = routes.egress[0] != template.egress
            for d, v in used_by_jobs(now, mix, routes):
                excepted[d, v] = False
            assert not excepted.any(), "an exception that no job uses"
        before = PreviousRoutes(now, mix, routes)
    assert before is not None
    last = engine.reroute(before, before.fabric, NOBODY, options)
    assert np.array_equal(last.egress[0], template_of(before.fabric).egress)


def no_worse_than_the_template(
    fabric: Fabric, mix: JobMix, routes: Routes, options: Options
) -> None:
    """By so much only as slows nobody, or as another start from the template must gain."""
    usual = ExceptedTables.of(template_of(fabric), mix, options, template_of(fabric).egress)
    ours = ExceptedTables.of(usual.template, mix, options, routes.egress[0])
    assert ours.peak() <= WORTH * max(usual.most, usual.peak()) + 1e-9


CUTS = (0, 15, *range(100, 1001, 100))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(first, last, marks=[pytest.mark.long] if first else [])
        for first, last in pairwise(CUTS)
    ],
)
def test_a_thousand_histories_on_trees(first: int, last: int) -> None:
    """Jobs come and go, cables, hosts and switches die and are repaired: always every pair, with
    loads that are exact, and in one lane wherever that is enough for the template."""
    for seed in range(first, last):
        tree = xgft_fabric(TREES[seed // 2 % len(TREES)])
        follow(tree, seed, 4, OBJECTIVES[seed % 2], tree=True)


@pytest.mark.parametrize("seed", [540, 644, 2056, 3890])
def test_histories_that_went_wrong(seed: int) -> None:
    """Entries from before a failure closed a credit loop with the new template's (540, 644); for
    the sake of phases a channel was loaded more than by the template (2056, 3890)."""
    tree = xgft_fabric(TREES[seed // 2 % len(TREES)])
    follow(tree, seed, 4, OBJECTIVES[seed % 2], tree=True)


@pytest.mark.parametrize(
    ("spec", "share", "seeds"),
    [("xgft:3;2,3,3;1,2,2", 0.1, (9, 34, 63)), ("xgft:3;3,2,4;1,3,2", 0.2, (0, 73, 100, 141))],
)
def test_exceptions_need_no_second_lane(spec: str, share: float, seeds: tuple[int, ...]) -> None:
    """Trees so damaged that D-mod-k refuses, and that a choice of shortest paths may close a loop,
    although the template's close none."""
    for seed in seeds:
        fabric = degraded(xgft_fabric(spec), share, seed)
        template = template_of(fabric)
        assert template.may_loop and check_routes(fabric, as_routes(template)).passed
        mix, engine = synthetic_mix(fabric, seed), SarPlus()
        routes = engine.route(fabric, mix, Options())
        assert check_routes(fabric, routes).passed
        knows_its_loads(mix, routes, engine)


@examples(40)
@given(fabric=fabrics(), seed=st.integers(0, 10**6), objective=st.sampled_from(OBJECTIVES))
def test_histories_on_any_fabric(fabric: Fabric, seed: int, objective: str) -> None:
    follow(fabric, seed, 5, objective, tree=False)


@examples(60)
@given(network=networks(), objective=st.sampled_from(OBJECTIVES))
def test_from_scratch_never_worse_than_the_template(
    network: tuple[Fabric, JobMix], objective: str
) -> None:
    fabric, mix = network
    routes = SarPlus().route(fabric, mix, Options(objective=objective))  # type: ignore[arg-type]
    found = measure(fabric, mix, routes)
    usual = measure(fabric, mix, as_routes(template_of(fabric)))
    if objective == "load":
        assert found.load_max <= usual.load_max + 1e-6
    else:
        assert found.effective_efi_max <= usual.effective_efi_max


@examples(60)
@given(network=networks())
def test_without_jobs_the_template(network: tuple[Fabric, JobMix]) -> None:
    fabric, mix = network
    engine = SarPlus()
    plain = engine.route(fabric, NOBODY, Options()).egress
    assert np.array_equal(plain[0], template_of(fabric).egress)
    before = PreviousRoutes(fabric, mix, engine.route(fabric, mix, Options()))
    assert np.array_equal(engine.reroute(before, fabric, NOBODY, Options()).egress, plain)


def sharing_mix(fabric: Fabric, seed: int, jobs: int) -> JobMix:
    """Jobs of 2 hosts to half of all, who share them as they come."""
    random = np.random.default_rng(seed)
    sizes = np.exp(random.uniform(np.log(2), np.log(fabric.terminals / 2), jobs)).astype(int)
    drawn = (random.permutation(fabric.terminals)[:size].tolist() for size in sizes)
    return multi_switch_mix(fabric, [make_job(str(j), hosts) for j, hosts in enumerate(drawn)])


@pytest.mark.parametrize("seed", range(1, 11))
def test_jobs_with_hosts_on_a_leaf_that_is_cut_off(seed: int) -> None:
    """Their paths end where they begin."""
    whole = xgft_fabric("xgft:2;4,4;1,4")
    cables = np.flatnonzero(whole.channel_source == whole.terminal_switch[0])
    fabric = whole.with_links_down(cables.tolist())
    mix = sharing_mix(fabric, seed, 12)
    engine = SarPlus()
    routes = engine.route(fabric, mix, Options())
    assert check_routes(fabric, routes).unreachable_pairs > 0
    knows_its_loads(mix, routes, engine)


def listed_otherwise(fabric: Fabric, seed: int, folder: Path) -> Fabric:
    """The same fabric from a file that lists nodes, and the cables of each, in another order."""
    path, random = folder / f"{seed}.net", Random(seed)
    write_ibsim_net(fabric, path)
    blocks = [block.splitlines() for block in path.read_text().split("\n\n") if "guid=" in block]
    random.shuffle(blocks)
    for block in blocks:
        cables = [line for line in block if line.startswith("[")]
        block[-len(cables) :] = random.sample(cables, len(cables))
    path.write_text("\n\n".join("\n".join(block) for block in blocks) + "\n")
    return read_ibsim_net(path.read_text())


@pytest.mark.parametrize("spec", ["xgft:2;6,6;1,4", "xgft:3;3,3,4;1,3,2", "torus:4x4,hosts=2"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_same_bytes_whatever_the_order_of_the_file(
    spec: str, objective: str, tmp_path: Path
) -> None:
    whole = load_fabric(spec)
    options = Options(objective=objective)  # type: ignore[arg-type]
    for seed in range(1, 4):
        files = []
        for order in range(3):
            fabric = listed_otherwise(whole, order, tmp_path)
            mixes = [renumbered(each, whole, fabric) for each in (synthetic_mix(whole, seed),
                     sharing_mix(whole, seed, 10))]  # fmt: skip
            engine = SarPlus()
            first = engine.route(fabric, mixes[0], options)
            then = engine.reroute(
                PreviousRoutes(fabric, mixes[0], first), fabric, mixes[1], options
            )
            files.append([host_rows(fabric, each) for each in (first, then)])
            if spec.startswith("xgft"):  # on a torus, entries to switches' own LIDs still differ
                files[-1] += [encode(routes_to_file(fabric, each, 1)) for each in (first, then)]
        assert files[0] == files[1] == files[2]


def host_rows(fabric: Fabric, routes: Routes) -> bytes:
    """Entries to hosts, by GUIDs."""
    order = np.argsort(fabric.terminal_guid), np.argsort(fabric.switch_guid)
    return routes.egress[0][np.ix_(*order)].tobytes()


def renumbered(mix: JobMix, fabric: Fabric, other: Fabric) -> JobMix:
    """The jobs on the indices of the other fabric, by GUID."""
    at = {guid: t for t, guid in enumerate(other.terminal_guid.tolist())}
    guids = fabric.terminal_guid.tolist()
    return JobMix.of(
        make_job(job.id, [at[guids[t]] for t in job.terminals.tolist()]) for job in mix.jobs
    )


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_lone_scattered_job_has_no_contention_in_shifts(seed: int) -> None:
    fabric = xgft_fabric("xgft:2;12,24;1,12")
    hosts = np.random.default_rng(seed).permutation(fabric.terminals)[:30]
    mix = JobMix.of([make_job("1", hosts.tolist())])
    shift = PATTERNS["shift"]
    usual = job_times(fabric, mix, as_routes(template_of(fabric)), shift)
    routes = SarPlus().route(fabric, mix, Options())
    assert usual.time[0] > 1.05
    assert job_times(fabric, mix, routes, shift).time[0] == pytest.approx(1.0, abs=1e-6)
    assert (routes.egress[0] != template_of(fabric).egress).sum() <= 30


@pytest.mark.parametrize("spec", ["xgft:2;12,24;1,12", "xgft:3;4,4,6;1,4,4", "xgft:2;12,24;1,6"])
def test_a_cable_that_dies_changes_few_entries(spec: str) -> None:
    fabric, random = xgft_fabric(spec), Random(1)
    for seed in range(1, 5):
        mix = synthetic_mix(fabric, seed)
        engine = SarPlus()
        before = engine.route(fabric, mix, Options())
        for _ in range(3):
            c = random.randrange(fabric.channels)
            broken = fabric.with_links_down([c])
            now = SarPlus().reroute(PreviousRoutes(fabric, mix, before), broken, mix, Options())
            ends = (c, int(fabric.channel_reverse[c]))
            over = sum(int((before.next_channel(fabric) == end).sum()) for end in ends)
            assert 0 < now.entries_changed(before) <= 3 * over
            assert check_routes(broken, now).passed


@pytest.mark.parametrize("seed", [2, 3])
def test_when_a_job_ends_entries_only_return(seed: int) -> None:
    """On whole trees, whose bound does not fall."""
    fabric = xgft_fabric("xgft:2;12,24;1,12")
    queue, engine, template = Queue(fabric, seed), SarPlus(), template_of(fabric).egress
    before = PreviousRoutes(fabric, queue.mix, engine.route(fabric, queue.mix, Options()))
    ends = 0
    for mix in islice(queue.changes(), 30):
        routes = engine.reroute(before, fabric, mix, Options())
        if len(mix.jobs) < len(before.mix.jobs):
            ends += 1
            changed = routes.egress[0] != before.routes.egress[0]
            assert (routes.egress[0] == template)[changed].all()
        before = PreviousRoutes(fabric, mix, routes)
    assert ends > 10


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_many_terminals_on_thin_subtrees_come_near_the_bound_of_subtrees(seed, monkeypatch):
    fabric = load_fabric("xgft:3;6,6,6;1,3,3")
    mix = synthetic_mix(fabric, seed)
    monkeypatch.setattr(job_loads, "SUBTREE_TERMINALS", 0)
    routes = SarPlus().route(fabric, mix, Options())
    check_routes(fabric, routes).require()
    found, bounds = measure(fabric, mix, routes), bounds_of(fabric, mix).load
    assert bounds["subtree"] > 1.2 * max(bounds["leaf"], bounds["whole"])
    assert found.load_max < 1.03 * bounds["subtree"]
    tables = ExceptedTables.of(template_of(fabric), mix, Options(), routes.egress[0].copy())
    assert tables.loads.least_loads().max() == pytest.approx(bounds["subtree"], rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "thin"),
    (
        ("xgft:3;6,6,6;1,3,3", 1),
        ("xgft:3;6,6,6;1,3,6", 0),  # thin at the leaves alone
        ("xgft:3;3,3,4;1,3,3", 0),
        ("xgft:4;3,3,3,3;1,3,1,3", 2),
        ("torus:4x4,hosts=2", 0),
    ),
)
def test_thin_subtrees_have_less_capacity_than_their_leaves(spec, thin):
    assert len(thin_subtrees(load_fabric(spec))) == thin
