"""Oblivious engines on XGFTs against the formulas of the paper (oblivious-xgft-2009)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft import Xgft, parse_xgft
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.research.engines.by_source import path_traffic
from sar_lab.research.engines.oblivious import Random, scrambled_labels
from tests.examples import examples
from tests.worlds.command_line import said, sar_agent
from tests.worlds.networks import cabled_by_hand
from tests.worlds.oracles import path


@st.composite
def specs(draw: st.DrawFn) -> str:
    """Up to 256 hosts, slimmed or not, of one to four levels."""
    height = draw(st.integers(1, 4))
    m = [draw(st.integers(1 if height > 1 else 2, 4)) for _ in range(height)]
    w = [1, *(draw(st.integers(1, 4)) for _ in range(height - 1))]
    # A single child or a leaf without a second host would make two levels look like one.
    m = [max(2, each) for each in m]
    return f"xgft:{height};{','.join(map(str, m))};{','.join(map(str, w))}"


NOBODY = JobMix(())


def label(tree: Xgft, host: int) -> list[int]:
    """M_1 … M_h."""
    digits = []
    for m in tree.m:
        host, digit = divmod(host, m)
        digits.append(digit)
    return digits


def climb(tree: Xgft, source: int, destination: int, ports: list[int]) -> list[str]:
    """Names of the switches on the way up and down, by the generator's own arithmetic."""
    s, d = label(tree, source), label(tree, destination)
    top = max((level for level in range(tree.height) if s[level] != d[level]), default=0) + 1
    node, way = tree.parent(0, source, 0), []
    for level in range(1, top):
        way.append(f"S{level}-{node}")
        node = tree.parent(level, node, ports[level - 1])
    way.append(f"S{top}-{node}")
    down, node = [], tree.parent(0, destination, 0)
    for level in range(1, top):
        down.append(f"S{level}-{node}")
        node = tree.parent(level, node, ports[level - 1])
    assert way[-1] == f"S{top}-{node}", "both climb to the same switch"
    return way + down[::-1]


def names(fabric: Fabric, source: int, way: Iterable[int]) -> list[str]:
    """Of the switches that a packet of a terminal passes on these channels."""
    first = fabric.switch_name[fabric.terminal_switch[source]]
    return [first, *(fabric.switch_name[fabric.channel_target[c]] for c in way)]


@examples(200)
@given(spec=specs(), random=st.randoms(use_true_random=False))
def test_dmodk_and_smodk_are_their_formulas(spec: str, random) -> None:
    fabric, tree = load_fabric(spec), parse_xgft(spec)
    routes = load_engine("dmodk").route(fabric, NOBODY, Options())
    assert check_routes(fabric, routes).passed
    paths = load_engine("smodk").paths(fabric, NOBODY, Options())  # type: ignore[attr-defined]
    for _ in range(30):
        s, d = random.randrange(fabric.terminals), random.randrange(fabric.terminals)
        by = {
            t: [m % w for m, w in zip(label(tree, t)[:-1], tree.w[1:], strict=True)] for t in (s, d)
        }
        way = path(fabric, routes, int(fabric.terminal_switch[s]), d)
        assert way is not None and names(fabric, s, way) == climb(tree, s, d, by[d])
        if s != d:
            [way] = paths.channels(np.array([s], np.int32), np.array([d], np.int32)).tolist()
            assert names(fabric, s, (c for c in way if c >= 0)) == climb(tree, s, d, by[s])


def test_the_offset_of_every_host_is_written(tmp_path: Path) -> None:
    args = ["route", "--fabric", "xgft:2;4,4;1,4", "--jobs", "mix:1", "--engine", "smodk"]
    refused = sar_agent(*args, "--out", tmp_path)
    assert refused.returncode == 1 and "--lmc 2 would do" in refused.stderr
    assert sar_agent(*args, "--out", tmp_path, "--lmc", "2").returncode == 0
    lines = (tmp_path / "lid_offsets.txt").read_text().splitlines()[1:]
    assert [int(line.split()[-1]) for line in lines] == [0, 1, 2, 3] * 4
    assert lines[5].startswith("n006 0x")
    found = said(*args, "--json", "--pattern", "shift:1")
    assert found["source_routed"] and found["lid_offsets_needed"] == 4
    assert found["contention"] == [{"flows": 1, "bound": 1}]


@pytest.mark.parametrize("seed", range(5))
def test_hand_cabled_trees_are_recognised(seed: int) -> None:
    view = recognise_xgft(cabled_by_hand(load_fabric("xgft:3;2,3,2;1,2,3"), seed))
    assert (view.m, view.w) == ((2, 3, 2), (1, 2, 3))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.with_links_down([0]), r'switch "S1-0" has a cable that is down'),
        (lambda f: load_fabric("dragonfly:a=4,p=2,h=2"), r"is not a fat tree: the cable"),
    ],
)
def test_other_fabrics_are_no_xgft(change, said: str) -> None:
    fabric = change(load_fabric("xgft:2;4,4;1,2"))
    with pytest.raises(Unserved, match=said):
        load_engine("dmodk").route(fabric, NOBODY, Options())


@examples(100)
@given(spec=specs(), seed=st.integers(0, 10**9))
def test_scrambled_labels_are_even_in_every_subtree(spec: str, seed: int) -> None:
    fabric = load_fabric(spec)
    view = recognise_xgft(fabric)
    labels = scrambled_labels(fabric, view, seed)
    assert np.array_equal(labels, scrambled_labels(fabric, view, seed))
    for level in range(1, view.height):
        subtree = view.inside[level, fabric.terminal_switch]
        for one in np.unique(subtree):
            # All hosts below one child agree; children are spread evenly.
            inside = np.flatnonzero(subtree == one)
            chosen: dict[int, int] = {}
            for t in inside:
                digit, parent = int(view.digit[t, level - 1]), int(labels[t, level - 1])
                assert chosen.setdefault(digit, parent) == parent
            counts = np.bincount(list(chosen.values()), minlength=view.w[level])
            assert counts.max() - counts.min() <= 1


def test_random_takes_every_root_about_as_often() -> None:
    fabric = load_fabric("xgft:2;16,16;1,10")
    paths = load_engine("random").paths(fabric, NOBODY, Options(seed=3))  # type: ignore[attr-defined]
    hosts = np.arange(256, dtype=np.int32)
    counts = np.bincount(paths.nca(np.repeat(hosts, 256), np.tile(hosts, 256)), minlength=10)
    assert counts.min() > 6200 and counts.max() < 6900


def test_effective_efi_of_paths_counts_all_pairs_and_load_those_that_send() -> None:
    fabric = load_fabric("xgft:3;4,4,2;1,2,2")
    ring, plain = (JobMix.of([make_job("1", range(0, 32, 3), t)]) for t in ("ring", None))
    paths = Random().paths(fabric, ring, Options())
    efi, load = path_traffic(paths, ring)
    hosts = ring.jobs[0].terminals.tolist()
    pairs = [(a, b) for a in hosts for b in hosts if a != b]
    counted, sent = Counter[int](), Counter[int]()
    for a, b in pairs:
        used = paths.channels(np.array([a], np.int32), np.array([b], np.int32))[0]
        counted.update(used[used >= 0].tolist())
        if hosts.index(b) == (hosts.index(a) + 1) % len(hosts):
            sent.update(used[used >= 0].tolist())
    assert efi.tolist() == [counted[c] for c in range(fabric.channels)]
    assert load.tolist() == [float(sent[c]) for c in range(fabric.channels)]
    assert path_traffic(paths, plain)[0].tolist() == efi.tolist()
