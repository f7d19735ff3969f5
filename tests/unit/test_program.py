"""Programs that print without end, hang, fail, or are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.slurm import squeue
from sar_agent.util.programs import (
    ProgramFailed,
    ProgramTimedOut,
    run_program,
)

SOON = 30.0


def run(body: str, *, deadline: float = SOON, most: int = 1000) -> str:
    return run_program(["/bin/sh", "-c", body], deadline=deadline, most=most, remedy="mend it")


def test_an_exit_code_is_told_with_what_was_said() -> None:
    with pytest.raises(ProgramFailed, match=r"^/bin/sh failed with exit code 3: oh no$"):
        run("echo ' oh  no' >&2; exit 3")
    with pytest.raises(ProgramFailed, match="nothing on stderr"):
        run("exit 1")


def test_stderr_is_shown_whole_in_one_line() -> None:
    """squeue names the cause in its last line; an endless complaint keeps its beginning and end."""
    script = (
        "for i in 1 2 3 4 5 6 7 8; do echo squeue: error: resolve_ctls_from_dns_srv $i >&2; done"
    )
    with pytest.raises(ProgramFailed) as caught:
        run(f"{script}; echo squeue: fatal: no slurm.conf >&2; exit 1")
    assert str(caught.value).endswith("_srv 7 squeue: error: resolve_ctls_from_dns_srv 8 "
                                      "squeue: fatal: no slurm.conf")  # fmt: skip
    with pytest.raises(ProgramFailed) as caught:
        run("for i in $(seq 2000); do echo line $i >&2; done; exit 1")
    text = str(caught.value)
    assert (
        "line 1 line 2 " in text
        and " … " in text
        and text.endswith("line 2000")
        and len(text) < 4100
    )


@pytest.mark.parametrize("body", ["sleep 600", "exec >&- 2>&-; sleep 600", "echo a; sleep 600"])
def test_its_deadline_holds_whatever_it_closes(body: str) -> None:
    with pytest.raises(ProgramTimedOut, match=r"no answer within 0\.5 s"):
        run(body, deadline=0.5)


@pytest.mark.parametrize("command", [["/no/such"], ["/"], ["a\0b"]])
def test_a_missing_program_is_named_with_the_remedy(command: list[str]) -> None:
    with pytest.raises(Unavailable, match=r"cannot be started \(.*\); mend it$"):
        run_program(command, deadline=SOON, most=9, remedy="mend it")


def endless(folder: Path) -> str:
    """A program that prints without end, whatever it is asked."""
    path = folder / "endless"
    path.write_text("#!/bin/sh\nexec yes 'a line of an endless queue'\n")
    path.chmod(0o755)
    return str(path)


ENDLESS = r"""
import re, sys
from pathlib import Path
from sar_agent.errors import Unavailable
from sar_agent.slurm.squeue import SqueueSource
try:
    SqueueSource([sys.argv[1]]).poll()
except Unavailable as error:
    print(error)
# Not ru_maxrss: that begins with what the parent had when it forked.
print(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def test_an_endless_squeue_is_one_sentence_and_little_memory(tmp_path: Path) -> None:
    """In a process of its own, for its peak is what is asked for. It was 5.9 GB."""
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, endless(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    sentence, peak = done.stdout.splitlines()
    assert sentence.endswith(
        "printed more than 64 MiB and was killed; run it by hand to see its output"
    )
    assert int(peak) * 1024 < 8 * squeue.MOST_BYTES
