"""C and Python agree on what a traffic pattern is, and on the table; declared traffic."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.demand.rank_order import ranks_of
from sar_agent.events.message import Event
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import LEAST_WEIGHT, MOST_WEIGHT, JobRecord
from sar_agent.jobs.traffic import forms, is_traffic
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from tests.examples import examples
from tests.worlds.live.built import built
from tests.worlds.networks import networks
from tests.worlds.oracles import effective_efi, path

NAMES = [form.form for form in forms()]
NUMBER = st.one_of(st.integers(0, 2_000_000).map(str), st.text("0123456789x.", max_size=8))
WEIGHT = st.floats(0, 200).map(lambda w: f"{w:.6f}") | st.text("0123456789.e-", max_size=9)


def filled(form: str) -> st.SearchStrategy[str]:
    """The form with something in its places, often something that fits."""
    places = [WEIGHT if c == "W" else NUMBER if c.isupper() else st.just(c) for c in form]
    return st.tuples(*places).map("".join)


WORDS = st.one_of(
    st.sampled_from(NAMES).flatmap(filled),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=70),
)


@pytest.fixture(scope="module")
def checker() -> Path:
    """The C table behind a command line, built with ASan and UBSan."""
    if not (shutil.which("make") and Path("/usr/include/munge.h").exists()):
        pytest.skip("nothing to build the C table with: tests/install-debian-packages")
    return built("slurm_spank", "traffic_check")


@examples(20)
@given(words=st.lists(WORDS, min_size=100, max_size=300))
def test_c_and_python_take_the_same_words(checker: Path, words: list[str]) -> None:
    done = subprocess.run(
        [checker], input="\n".join(words) + "\n", capture_output=True, text=True, check=True
    )
    said = [line == "1" for line in done.stdout.splitlines()]
    assert said == [is_traffic(word) for word in words]


def test_the_help_of_the_plugin_is_the_table(checker: Path) -> None:
    printed = subprocess.run([checker, "help"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 1) for line in printed.splitlines()[1:-1]]
    assert rows == [[form.form, form.meaning] for form in forms()]


OLDER = ("none", "ring", "stencil2d:AxB", "stencil3d:AxBxC", "transpose", "shift:K", "bitcomp",
         "butterfly", "alltoall", "weight=W")  # fmt: skip
"""The forms of the first plugin that sites may have."""


def test_a_plugin_of_an_older_table_says_what_the_agent_knows(tmp_path: Path) -> None:
    """And it refuses the newer words when a job is submitted."""
    if not (shutil.which("make") and Path("/usr/include/munge.h").exists()):
        pytest.skip("nothing to build the C table with: tests/install-debian-packages")
    (tmp_path / "traffic.txt").write_text("".join(f"{form} | as then\n" for form in OLDER))
    plugin = Path(__file__).parents[2] / "slurm_spank"
    subprocess.run(
        ["make", "-s", "-C", plugin, f"BUILD={tmp_path}", f"TABLE={tmp_path}/traffic.txt",
         f"{tmp_path}/traffic_check"], check=True, capture_output=True,
    )  # fmt: skip
    words = [re.sub("[A-Z]", "4", form) for form in NAMES]
    done = subprocess.run(
        [tmp_path / "traffic_check"], input="\n".join(words) + "\n", capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    taken = [
        word for word, said in zip(words, done.stdout.splitlines(), strict=True) if said == "1"
    ]
    assert taken == [re.sub("[A-Z]", "4", form) for form in OLDER]
    assert all(map(is_traffic, taken))


def test_a_word_of_a_newer_plugin_counts_as_not_given(caplog: pytest.LogCaptureFixture) -> None:
    given = [
        Event(v=1, event="hint", job=str(job), id="0" * 16, traffic=word)
        for job in (7, 8)
        for word in ("hypercube:5", "ring")
    ]
    with caplog.at_level(logging.WARNING):
        assert [each.known_traffic for each in given] == [None, "ring"] * 2
    assert caplog.messages == [
        "traffic 'hypercube:5' is not known here and counts as not given; is the SPANK plugin "
        "newer?"
    ]


@given(weight=st.integers(1, 100_000).map(lambda thousandths: thousandths / 1000))
def test_a_weight_is_what_the_job_weighs(weight: float) -> None:
    word = f"weight={weight:g}"
    assert LEAST_WEIGHT <= weight <= MOST_WEIGHT
    assert is_traffic(word)
    assert JobRecord("1", (), "RUNNING", traffic=word).weight == pytest.approx(weight, rel=1e-4)


PARTNERS = {
    "ring": lambda i, n: [(i + 1) % n],
    "shift:2": lambda i, n: [(i + 2) % n],
    "bitcomp": lambda i, n: [n - 1 - i],
    "stencil2d:1x2": lambda i, n: [1 - i] * 2 if i < 2 else [],
}
"""Written again, from the words of `traffic.txt`: rank, ranks → ranks that it sends to."""


@examples(60)
@given(network=networks(), patterns=st.lists(st.sampled_from(sorted(PARTNERS)), min_size=4))
def test_loads_are_those_of_the_declared_flows(
    network: tuple[Fabric, JobMix], patterns: list[str]
) -> None:
    fabric, mix = network
    jobs = [
        make_job(job.id, job.terminals, pattern)
        for job, pattern in zip(mix.jobs, patterns, strict=False)
        if len(job.terminals) > 2
    ]
    declared = JobMix.of(jobs)
    routes = load_engine("sar-plus").route(fabric, declared, Options())
    load: Counter[int] = Counter()
    for job in declared.jobs:
        ranks, n = ranks_of(fabric, JobMix((job,))), len(job.terminals)
        speed = float(fabric.terminal_rate[job.terminals].min())
        assert job.traffic
        for i in range(n):
            partners = PARTNERS[job.traffic](i, n)
            for k in partners:
                leaf = int(fabric.terminal_switch[ranks[i]])
                for c in (path(fabric, routes, leaf, int(ranks[k])) or []) if i != k else []:
                    load[c] += speed / len(partners) / float(fabric.channel_rate[c])
    expected = [load[c] for c in range(fabric.channels)]
    found = measure(fabric, declared, routes)
    assert np.allclose(found.channel_load, expected)
    assert found.lower_bound_load_max <= max(expected, default=0.0) + 1e-9
    # What sar-2016 defines counts all pairs of a job, whatever it declares.
    assert found.channel_efi.tolist() == effective_efi(fabric, declared, routes)
    assert found.lower_bound_efi_max <= found.effective_efi_max
    assert found.least_dark_fiber <= found.dark_fiber_ratio + 1e-9
    plain = measure(fabric, JobMix.of(make_job(j.id, j.terminals) for j in jobs), routes)
    for ours, theirs in zip(found.jobs_detail, plain.jobs_detail, strict=True):
        assert (ours.efi_max, ours.links) == (theirs.efi_max, theirs.links)
        assert ours.efi_own_max == theirs.efi_own_max


def test_traffic_that_does_not_fit_counts_as_an_all_to_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fabric = load_fabric("xgft:2;4,4;1,4")
    mixes = [
        JobMix.of([make_job("7", range(2, 14), traffic)]) for traffic in ("stencil2d:5x5", None)
    ]
    with caplog.at_level(logging.WARNING):
        routes = [load_engine("sar-plus").route(fabric, mix, Options()) for mix in mixes]
    loads = [measure(fabric, mix, routes[1]).load_max for mix in mixes]
    assert loads[0] == loads[1]
    assert np.array_equal(routes[0].egress, routes[1].egress)
    assert "a grid of 5x5 needs 25 ranks, the job has 12" in caplog.text
