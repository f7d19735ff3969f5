"""Knowledge of hosts is kept where only cables between switches change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import PortNames, decode_opensm_fabric
from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.record import JobRecord
from tests.worlds.fabric_texts import ibnetdiscover_text
from tests.worlds.opensm_files import image_of_text

FABRIC = load_fabric("xgft:3;2,2,2;1,2,2")


def image(fabric: Fabric, edit: Callable[[str], str] = lambda text: text) -> bytes:
    return image_of_text(edit(ibnetdiscover_text(fabric)))


def without_a_cable(text: str) -> str:
    """Without the last cable between two switches: the order of the switches, which is breadth
    first, stays."""
    lines = text.splitlines(keepends=True)
    first = max(n for n, line in enumerate(lines) if line.startswith("[") and ']\t"S-' in line)
    port = lines[first].split("]")[0] + "]"
    near = next(line for line in lines[first::-1] if line.startswith("Switch")).split('"')[1]
    far = lines[first].split('"')[1]
    back = lines[first].split('"')[2].split("]")[0] + "]"
    block = ""
    kept = []
    for n, line in enumerate(lines):
        block = line.split('"')[1] if line.startswith("Switch") else block
        returns = block == far and line.startswith(back) and f'"{near}"{port}' in line
        if n != first and not returns:
            kept.append(line)
    assert len(kept) == len(lines) - 2
    return "".join(kept)


def another_name(text: str) -> str:
    host = FABRIC.terminal_host[0]
    assert host in text
    return text.replace(host, "renamed")


@pytest.mark.parametrize(
    ("edit", "kept"), [(lambda text: text, True), (without_a_cable, True), (another_name, False)]
)
def test_the_fabric_is_the_one_without_earlier_names(
    edit: Callable[[str], str], kept: bool
) -> None:
    names = PortNames(HostMapper())
    before = decode_opensm_fabric(image(FABRIC), names=names).fabric
    assert before.hosts and before.job_ports
    changed = image(FABRIC, edit)
    now, alone = decode_opensm_fabric(changed, names=names), decode_opensm_fabric(changed)
    assert now.fabric.digest == alone.fabric.digest
    assert now.fabric.terminal_host == alone.fabric.terminal_host
    assert np.array_equal(now.fabric.terminal_guid, alone.fabric.terminal_guid)
    assert now.fabric.hosts == alone.fabric.hosts
    assert now.fabric.job_ports == alone.fabric.job_ports
    assert (now.fabric.hosts is before.hosts) is kept


def test_jobs_are_those_of_the_fabric_of_now() -> None:
    hosts = sorted(FABRIC.hosts)
    records = (JobRecord("1", tuple(hosts), "RUNNING"), JobRecord("2", tuple(hosts[:3]), "RUNNING"))
    first = mix_of_records(FABRIC, records).mix
    cable = FABRIC.with_links_down([0])
    assert same_hosts(FABRIC, cable) and mix_of_records(cable, records).mix.jobs == first.jobs
    leaf = int(FABRIC.terminal_switch[0])
    dead = FABRIC.with_links_down([], [leaf])
    assert not same_hosts(FABRIC, dead)
    less = mix_of_records(dead, records).mix
    assert len(less.jobs[0].terminals) < len(first.jobs[0].terminals)
    assert mix_of_records(FABRIC, records).mix == first
