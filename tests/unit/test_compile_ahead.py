"""Other processes that compile what an assessment needs later."""

from __future__ import annotations

import subprocess
import sys

from sar_lab.assess.compile_ahead import PARTS, WITHIN, compile_parts
from sar_lab.assess.rate import ENGINES


def test_it_ends_with_the_process_that_started_it() -> None:
    code = (
        "import time; from sar_lab.assess.compile_ahead import end_with_stdin; end_with_stdin(); "
        "print('ready', flush=True); time.sleep(10**6)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "ready\n"
    process.stdin.close()
    assert process.wait() == 0


def test_the_parts_are_engines_of_an_assessment_and_all_run() -> None:
    named = [part for parts in PARTS for part in parts]
    assert set(named) <= {*ENGINES, *WITHIN.values(), "simulate"}
    assert len(named) == len(set(named))
    compile_parts(("dfsssp", "simulate", *WITHIN.values()))
