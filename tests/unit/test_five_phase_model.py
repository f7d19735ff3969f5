"""libs/migrate/model/five_phase.pml, explored by spin; each broken rule is found."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "libs/migrate/model/check.sh"
pytestmark = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None,
    reason="no spin: run tests/install-debian-packages",
)
BROKEN = {  # rule → subscribers that it takes to see it broken
    "ACK_BEFORE_DRAINED": 1,
    "MEMBERS_NOT_SAVED": 1,
    "ANY_ACK": 1,
    "DROP_WITHOUT_FENCING": 1,
    "INSTALL_WITHOUT_WAITING": 2,
    "FILE_BEFORE_ACKS": 1,
    "FILE_IN_PLACE": 1,  # as it was until 0.1.0: kill -9 between the file and the load
    "DEADLINE_IS_THE_END": 1,  # of a load, with which OpenSM goes on
    "REPATH_BEFORE_READ_BACK": 1,
    "RESTART_FORGETS": 1,
}


def check(*words: str) -> tuple[int, str]:
    run = subprocess.run([CHECK, *words], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def states(said: str) -> int:
    found = re.search(r"^ *(\d+) states, stored", said, re.MULTILINE)
    assert found, said
    return int(found[1])


@pytest.mark.long
def test_one_subscriber_two_updates() -> None:
    code, said = check("1", "2")
    assert code == 0, said
    assert states(said) > 5000, "everything is reached, not just the beginning"


@pytest.mark.long
@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found(rule: str) -> None:
    code, said = check(str(BROKEN[rule]), "2", f"BREAK_{rule}")
    assert code == 1, said
    assert "assertion violated" in said


@pytest.mark.long
def test_every_run_ends_and_one_without_deadlines_does_not() -> None:
    code, said = check("ends")
    assert code == 0, said
    code, said = check("ends", "BREAK_NO_DEADLINE")
    assert code == 1 and "acceptance cycle" in said, said
