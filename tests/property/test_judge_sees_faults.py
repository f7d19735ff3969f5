"""The judge of repairs sees faults that are planted into the plugin's C code, each within minutes.

`make` builds a changed copy of the sources, so that what is judged is the code itself."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.worlds.judged_stories import tell
from tests.worlds.live.built import built
from tests.worlds.repair_steps import SHAPES

FAULTS = {
    "what was put off is forgotten": [
        ("follow.c", "in_force->put_off_count ||", "false ||"),
    ],
    "no step follows a repair": [
        ("follow.c", "(in_force->step || !settled)", "!settled"),
    ],
    "steps that drop packets are final": [
        ("follow.c", "&& !put_off", "&& (put_off || true)"),
        ("own.c", "if (!to->drops || !task->settled || to->put_off_count)", "if (true)"),
    ],
    "the flag is kept": [
        (
            "own.c",
            "if (t->fit.hosts[s] && loses(t, live, s, lid, to.leaf))",
            "if (t->fit.hosts[s] && (loses(t, live, s, lid, to.leaf) || true))",
        ),
    ],
    "the flag is never set": [
        ("own.c", "to->drops = drops(to, task->live);", "(void)drops;"),
    ],
    "nothing is verified": [
        (
            "own.c",
            "if (task->known && !verify_tables(task, to, why))",
            "if (!task && !verify_tables(task, to, why))",
        ),
    ],
    "the copies of before count as what the switches have": [
        ("read_back.c", "memset(sw->lft, 0, sw->lft_size);", "(void)sw;"),
        ("read_back.c", "port && sw->lft && at <= top", "false && port && at <= top"),
    ],
    "older packets are forgotten": [
        (
            "verify.c",
            "if (!changed[c->lid] || may_mix(c, ALL))",
            "if (!changed[c->lid] || may_mix(c, OLDER))",
        ),
    ],
}
SEEDS = 4000


def with_fault(fault: str, folder: Path) -> Path:
    """The program of `built`, with this fault in a copy of its sources."""
    root = built("opensm_bridge", "sweeps_run").parents[2]
    for part in ("opensm_bridge", "libs"):
        shutil.copytree(root / part, folder / part)
    (folder / "sar_agent").mkdir()
    shutil.copy2(root / "sar_agent" / "__init__.py", folder / "sar_agent")
    for name, right, wrong in FAULTS[fault]:
        source = folder / "opensm_bridge" / name
        text = source.read_text()
        assert text.count(right) == 1, f"{name} has changed: the fault '{fault}' is not planted"
        source.write_text(text.replace(right, wrong))
    made = subprocess.run(
        ["make", "-C", folder / "opensm_bridge", "sweeps_run"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder / "opensm_bridge" / "build" / "sweeps_run"


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str, tmp_path: Path) -> None:
    program, seen = with_fault(fault, tmp_path), Counter[str]()
    for seed in range(SEEDS):
        for shape in SHAPES:
            try:
                tell(seed, shape, tmp_path, program, seen)
            except AssertionError as error:
                print(f"{fault}: seen after {seen['judged repairs']} repairs: {error}")
                return
    pytest.fail(f"not seen in {seen['judged repairs']} repairs")
