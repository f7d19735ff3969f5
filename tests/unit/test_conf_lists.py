"""Host lists in Slurm's files; tests/live compares with the real scontrol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import read_list, write_list

NAMES = st.text("nS09-_.;:/", min_size=1, max_size=24)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("n1 n2 n3", "n[1-3]"),
        ("n08 n09 n10 n11", "n[08-11]"),
        ("n9 n10 n011", "n[9-10,011]"),
        ("n1 n01", "n[1,01]"),
        ("cn01b cn02b", "cn01b,cn02b"),
        ("r1n1 r2n1", "r1n1,r2n1"),
        ("MF0_r1_MQM_U1 MF0_r2_MQM_U1", "MF0_r1_MQM_U1,MF0_r2_MQM_U1"),
        ("S-0c42a103007a1e0a S-0c42a103007a1e0b", "S-0c42a103007a1e0a,S-0c42a103007a1e0b"),
        ("12 13", "[12-13]"),
        (f"x{'1' * 21}", f"x111[{'1' * 18}]"),
    ],
)  # fmt: skip
def test_written(names: str, text: str) -> None:
    assert write_list(names.split()) == text


@given(st.lists(NAMES, min_size=1, unique=True))
def test_each_version_reads_written_lists(names: list[str]) -> None:
    read, suffixed = read_list(write_list(names))
    assert sorted(read) == sorted(names) and not suffixed


@pytest.mark.parametrize("text", ["n[1", "n1]", "n[1,]", "n[]", "n[3-1]", "n[1-99999]", "n[a]"])
def test_refused_by_each_version(text: str) -> None:
    with pytest.raises(InputError):
        read_list(text)


def test_a_list_too_long_for_this_machine() -> None:
    with pytest.raises(InputError, match="too many"):
        read_list("n[1-60000][1-60000][1-60000]")
