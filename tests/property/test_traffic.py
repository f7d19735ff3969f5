"""C and Python agree on what a traffic pattern is, and on the table."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.jobs.record import LEAST_WEIGHT, MOST_WEIGHT, JobRecord
from sar_agent.jobs.traffic import forms, is_traffic
from tests.examples import examples
from tests.worlds.live.built import built

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


@given(weight=st.integers(1, 100_000).map(lambda thousandths: thousandths / 1000))
def test_a_weight_is_what_the_job_weighs(weight: float) -> None:
    word = f"weight={weight:g}"
    assert LEAST_WEIGHT <= weight <= MOST_WEIGHT
    assert is_traffic(word)
    assert JobRecord("1", (), "RUNNING", traffic=word).weight == pytest.approx(weight, rel=1e-4)
