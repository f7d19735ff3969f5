"""An odd name or record decides nothing for the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.squeue_text import parse_squeue_pipe


@pytest.mark.parametrize(
    "text", ["HCA-1", "HCA-2 mlx5_0", "(none) mlx5_0", "ubuntu mlx5_0", "Voltaire 4036E IO gw1"]
)
def test_default_descriptions_hold_no_host(text: str) -> None:
    assert HostMapper()(text).host is None


@pytest.mark.parametrize("host", ["ubuntu-01", "debian9", "hca-1n", "voltaire1"])
def test_hosts_that_are_called_alike_stay(host: str) -> None:
    assert HostMapper()(f"{host} mlx5_0").host == host


def test_one_id_in_two_clusters_is_two_jobs() -> None:
    row = "|RUNNING|{}|p|u|a|1|2026-01-01T00:00:00|"
    lines = ["CLUSTER: alpha", "100+0" + row.format("n1"), "100+1" + row.format("n2")]
    lines += ["CLUSTER: beta", "100" + row.format("n4"), "7" + row.format("n5")]
    text = "\n".join(lines)
    jobs = {job.id: job.hosts for job in parse_squeue_pipe(text)}
    assert jobs == {"alpha:100": ("n1", "n2"), "beta:100": ("n4",), "7": ("n5",)}


def test_a_port_is_compared_with_the_same_hca_of_other_hosts() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")
    rate = np.full(fabric.terminals, 400, np.float32)
    hcas = [f"mlx5_{t % 4}" for t in range(fabric.terminals)]
    rate[3::4] = 200  # mlx5_3 is for storage
    rate[5], rate[10] = 200, 100
    described = [f"{h} {hca}" for h, hca in zip(fabric.terminal_host, hcas, strict=True)]
    odd = odd_cables(replace(fabric, terminal_rate=rate, terminal_description=tuple(described)))
    assert [each.terminals for each in odd.odd] == [(10,), (5,)]
