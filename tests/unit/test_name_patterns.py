"""Numbers in brackets are Slurm's lists, for hosts, HCAs and switches; all else is a pattern."""

from __future__ import annotations

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import HostMapper, Kind
from sar_agent.fabric.name_patterns import matches
from sar_agent.fabric.spec import load_fabric
from sar_agent.reports.places import find_places


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("mlx5_[0-11]", ["mlx5_0", "mlx5_2", "mlx5_11"], ["mlx5_12", "mlx5_02", "mlx5_"]),
        ("n[08-10,20]*", ["n08", "n09", "n10", "n20-ib"], ["n8", "n11", "n2"]),
        ("n[1-4][10-12]", ["n110", "n412"], ["n11", "n510", "n113"]),
        ("rack[12]-?", ["rack1-a", "rack2-b"], ["rack12-a"]),
        ("n[!12]", ["n3"], ["n1"]),
        ("n[2-1,1-2-3]", [], ["n1", "n2", "n3"]),
    ],
)
def test_numbers_in_brackets_are_a_list(pattern: str, named: list[str], others: list[str]) -> None:
    assert [name for name in named + others if matches(name, [pattern])] == named


def test_settings_take_numbers_above_nine() -> None:
    mapper = HostMapper(storage_hosts=("st[9-12]",), job_hcas=("mlx5_[0-11]",))
    assert [mapper.kind(f"st{n}") == Kind.STORAGE for n in (1, 2, 9, 12, 13)] == [
        *(False, False, True, True, False)
    ]
    assert [n for n in range(14) if mapper.used_by_jobs(f"mlx5_{n}", 1)] == list(range(12))


def test_a_host_list_never_names_other_hosts() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")
    hosts = list(fabric.hosts)
    prefix = hosts[0].rstrip("0123456789")
    first = int(hosts[0].removeprefix(prefix))
    width = len(hosts[0]) - len(prefix)
    low, high = f"{first + 8:0{width}d}", f"{first + 11:0{width}d}"
    found = find_places(fabric, [f"{prefix}[{low}-{high}]"]).terminals
    assert {fabric.terminal_host[t] for t in found} == set(hosts[8:12])
    beyond = f"{first + len(hosts) + 2:0{width}d}"
    with pytest.raises(InputError, match="is a host list"):
        find_places(fabric, [f"{prefix}[{low}-{beyond}]"])
