"""`HostMapper`: node descriptions to hosts."""

from __future__ import annotations

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import HostMapper, Kind


@pytest.mark.parametrize(
    ("description", "host", "hca"),
    [
        ("n001 HCA-1", "n001", "HCA-1"),
        ("stage97 mlx4_0", "stage97", "mlx4_0"),
        ("SAT111092710053 ibp11s0f0", "SAT111092710053", "ibp11s0f0"),
        ("knl-01 hfi1_0", "knl-01", "hfi1_0"),
        ("selene-cache-1 mlx5_0 ", "selene-cache-1", "mlx5_0"),
        ("n001", "n001", ""),
        ("n001.cluster.org HCA-2", "n001", "HCA-2"),
        ("10.1.2.3 HCA-2", "10.1.2.3", "HCA-2"),
        ("MF0;ib5:SX6036/U1", "ib5", "SX6036/U1"),
        ("MT25408 ConnectX Mellanox Technologies", None, ""),
        ("MT4129 ConnectX7   Mellanox Technologies", None, ""),
        ("localhost HCA-3", None, ""),
        ("", None, ""),
    ],
)
def test_default(description: str, host: str | None, hca: str) -> None:
    assert HostMapper()(description) == (host, hca, Kind.COMPUTE)


def test_lists_as_config_files_give_them() -> None:
    mapper = HostMapper(storage_hosts=["a*"])  # type: ignore[arg-type]
    assert hash(mapper) == hash(HostMapper(storage_hosts=("a*",)))


@pytest.mark.parametrize("pattern", ["(?P<host>", r"(\w+) .*"])
def test_bad_pattern(pattern: str) -> None:
    with pytest.raises(InputError) as caught:
        HostMapper(host_pattern=pattern)
    assert str(caught.value).startswith(f"host_pattern: {pattern!r}")
