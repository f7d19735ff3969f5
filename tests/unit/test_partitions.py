"""partitions.conf, the policy file, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.partition_policy import read_partitions
from sar_agent.jobs.partitions import Policy, weights_from_counters
from sar_agent.jobs.partitions_conf import read_partitions_conf
from tests.worlds.partition_texts import CONF, FABRIC, GUID, POLICY

NOBODY = JobMix(())


def write(folder: Path, text: str, name: str = "partitions.conf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_opensm_s_own_file(tmp_path: Path) -> None:
    path = write(tmp_path, CONF)
    parts, notes = read_partitions_conf(path, FABRIC)
    assert [(p.name, p.key, p.terminals.tolist()) for p in parts] == [
        ("gold", 1, [0, 5, 9]),
        ("silver", 2, [1, 2]),
        ("0x0003", 3, list(range(16))),
    ]
    assert notes == [f"{path}:7: port 0x0000000000000123 is not in the fabric"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a=1 : ALL ;\nb=0x8001 : ALL ;\n", 2, "P_Key 0x0001 of b is that of a at line 1"),
        ("a=x : ALL ;\n", 1, "P_Key 'x' is not a number; e.g. 0x8001"),
        ("a=0x8000 : ALL ;\n", 1, "is 0 but for its highest bit"),
        ("\na=1 : n001 ;\n", 2, "'n001' is not a port; port GUIDs such as"),
        ("a=1 : ALL,\n0x1=owner ;\n", 2, "membership 'owner' of 0x1; one of full, limited, both"),
        ("a=1, defmember=x : ALL ;\n", 1, "membership 'x' of defmember"),
        ("a=1 ALL ;\n", 1, "'a=1 ALL' has no `:`"),
        ("a=1 : ALL ;\nb=2 : ALL\n", 2, "does not end; put a `;`"),
    ],
)
def test_wrong_lines(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_partitions_conf(write(tmp_path, text), FABRIC)
    assert said in str(caught.value) and caught.value.line == line


def test_a_policy_file(tmp_path: Path) -> None:
    write(tmp_path, CONF.replace("=0x3 : ALL_CAS, ALL_SWITCHES ;\n", ""))
    found, notes = read_partitions(write(tmp_path, POLICY, "policy.toml"), FABRIC, NOBODY)
    assert [(p.name, p.policy, p.group) for p in found.parts] == [
        ("gold", Policy.PHY, ""), ("silver", Policy.VLANE, "metals"), ("night", Policy.DEF, ""),
    ]  # fmt: skip
    assert found.parts[2].terminals.tolist() == [14, 15]
    assert not found.strict and found.phy_links_most == 0.5 and len(notes) == 1
    weights = found.weights(16)
    assert (weights[0], weights[2], weights[1]) == (100, 7, 1)
    assert found.of_terminal(16).tolist()[:4] == [0, 1, 1, -1]
    assert found.isolation.tolist() == [0, 1, 2]


def test_jobs_are_partitions(tmp_path: Path) -> None:
    mix = JobMix.of([make_job("17", [0, 4, 8]), make_job("18", [1, 5])])
    text = 'jobs = true\nbalance = "jobs"\n[partition.18]\npolicy = "phy"\n'
    found, _ = read_partitions(write(tmp_path, text, "p.toml"), FABRIC, mix)
    assert [(p.name, p.policy.name) for p in found.parts] == [("17", "DEF"), ("18", "PHY")]
    assert found.balance_jobs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode = 1\n", "mode = 1: should be 'strict' or 'best-effort'"),
        ("mode = \n", "is not TOML"),
        ("colour = 1\n", "colour = 1: Extra inputs are not permitted"),
        ("weights = { n001 = 0 }\n", "weights.n001 = 0: should be greater than 0"),
        ("weights = { x = 1 }\n", "x: no such host in the fabric"),
        ("[partition.gold]\n", "partition.gold: there is no such partition; known are none"),
        (
            '[partition.a]\npolicy = "phy"\nhosts = ["n001"]\n'
            '[partition.b]\npolicy = "phy"\nhosts = ["n001", "n002"]\n',
            "is in the phy partitions a and b",
        ),
    ],
)
def test_wrong_policies(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text, "p.toml")
    with pytest.raises(InputError) as caught:
        read_partitions(path, FABRIC, NOBODY)
    assert said in str(caught.value) and str(path) in str(caught.value)


def test_equation_1() -> None:
    """The map of [min, max] onto [1, 100]; where all are alike, 1 (ERRATA.md)."""
    mapped = weights_from_counters(np.array([10.0, 20.0, 15.0]))
    assert mapped.tolist() == [1.0, 100.0, 50.5]
    assert weights_from_counters(np.array([3.0, 3.0])).tolist() == [1.0, 1.0]


def test_weights_from_port_counters(tmp_path: Path) -> None:
    write(tmp_path, f"# guid bytes\n{GUID[0]} 0\n{GUID[3]} 500\n0x77 9\n", "counters")
    path = write(tmp_path, 'counters = "counters"\n', "p.toml")
    found, _ = read_partitions(path, FABRIC, NOBODY)
    assert found.weights(16).tolist()[:4] == [1, 1, 1, 100]
    write(tmp_path, "n001 5\n", "counters")
    with pytest.raises(InputError, match="counters:1: 'n001 5' is not `PORTGUID COUNT`"):
        read_partitions(path, FABRIC, NOBODY)


def test_none_is_no_port(tmp_path: Path) -> None:
    text = "Default=0x7fff : ALL ;\nlater=0x13 : NONE ;\n"
    read_partitions_conf(write(tmp_path, text), FABRIC)
