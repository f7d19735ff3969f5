"""Processes that look for free ports at the same time get different ones."""

from __future__ import annotations

import subprocess
import sys

from sar_lab.live import process

ASK = "from sar_lab.live.process import free_port; print(free_port(3), flush=True); input()"


def test_a_port_that_another_process_was_given_is_not_given_again() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin and other.stdout
        first = int(other.stdout.readline())
        assert not process._reserve(first + 2, 1)
        other.communicate("\n")
    assert process._reserve(first + 2, 1)


def test_only_the_last_ports_are_kept() -> None:
    for _ in range(process._KEPT + 3):
        process.free_port(25)
    assert len(process._RESERVED) == process._KEPT
