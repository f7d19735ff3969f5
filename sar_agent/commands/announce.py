"""Says on stderr what a person waits for: kernels that are compiled, and no jobs at all."""

from __future__ import annotations

import sys
from functools import cache

_program = "sar-agent"


def name_program(name: str) -> None:
    """From now on, notes begin with this name."""
    global _program
    _program = name


def note(sentence: str) -> None:
    """One line on stderr, whether or not it is a terminal."""
    print(f"{_program}: {sentence}", file=sys.stderr)


@cache
def announce_compiling() -> None:
    """From now on, the first kernel that this process compiles is announced on stderr."""
    from sar_agent.util.kernels import collect_seldom, compile_listeners

    def first(function: object) -> None:
        compile_listeners.remove(first)
        collect_seldom()
        note("compiling kernels, up to two minutes; only the first run on a machine does")

    compile_listeners.append(first)


def progress(step: str) -> None:
    """The current step of a long command."""
    print(f"… {step}", file=sys.stderr, flush=True)
