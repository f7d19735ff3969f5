"""Host lists as Slurm reads them, and as we write them in Slurm's files; tests/property compares
with an oracle, tests/live with the real scontrol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import read_list, write_list
from sar_agent.util import hostlist
from sar_agent.util.hostlist import expand
from tests.data import data_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("login-a.x_1", "login-a.x_1"),
        ("n[08-10]", "n08 n09 n10"),
        ("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"),
        ("cpn-f13-03-[01-02],cpn-f13-04-01", "cpn-f13-03-01 cpn-f13-03-02 cpn-f13-04-01"),
        ("n[1-2]-ib", "n1-ib n2-ib"),
        ("r[1,08-9]n[1-2]-ib,[3-4],a", "r1n1-ib r1n2-ib r08n1-ib r08n2-ib r09n1-ib r09n2-ib 3 4 a"),
        ("n[1-2][3-4]", "n13 n14 n23 n24"),
        ("n[1,01,2]", "n1 n2 n01"),
        ("n[2,1-3]", "n1 n2 n3"),
        # Uneven widths: what `scontrol show hostnames` of 22.05 prints for them.
        ("n[98-101]", "n98 n99 n100 n101"),
        ("n[001-3]", "n001 n002 n003"),
        ("n[8-012]", "n8 n9 n10 n11 n12"),
        ("GPU+n[1-2],c:n1,a@n1", "GPU+n1 GPU+n2 c:n1 a@n1"),
        ("n[08-012],x", "n08 n09 n10 n11 n12 x"),
    ],
)
def test_expand(text, names):
    assert sorted(expand(text)) == sorted(names.split())


@pytest.mark.parametrize(
    "text",
    ["n[1-", "n[1-2]]", "n[]", "n[3-1]", "n[a]", "a b", "@group", "n*", "a!b", "a,,b", "a;b", "n1|",
     "n[1-9999999999]", "n[1-9999999],x", "a\nb", "(null)", "n[-3-1]", "a,-b", "-n1",
     "a\n", "a,", ",a", ",", "n[1,]", "n[1-99999]x[1-99]"],
)  # fmt: skip
def test_garbage_is_refused(text):
    with pytest.raises(InputError, match=r"host list|more than"):
        expand(text)


@pytest.mark.data
def test_lists_expand_as_by_scontrol():
    names = data_path("slurm/scontrol_hostnames.txt").read_text().split()
    assert list(expand("n[0001-0010,0014,0100-0102]")) == names


def test_no_more_names_are_made_than_a_list_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of single numbers, which are added one by one."""
    monkeypatch.setattr(hostlist, "_MOST_HOSTS", 1000)
    with pytest.raises(InputError, match="names more than 1000 hosts"):
        expand(f"r[1-900]n[{','.join(map(str, range(1, 100)))}]")


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
