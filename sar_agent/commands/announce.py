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
    from numba.core import event

    from sar_agent.util.kernels import collect_seldom

    class First(event.Listener):
        seen = False

        def on_start(self, event: event.Event) -> None:
            if not First.seen and _is_ours(event.data["dispatcher"].py_func):
                First.seen = True
                collect_seldom()
                note("compiling kernels, up to two minutes; only the first run on a machine does")

        def on_end(self, event: event.Event) -> None:
            pass

    event.register("numba:compile", First())  # type: ignore[no-untyped-call]


def _is_ours(function: object) -> bool:
    return getattr(function, "__module__", "").startswith(("sar_agent.", "sar_lab."))


def progress(step: str) -> None:
    """The current step of a long command."""
    print(f"… {step}", file=sys.stderr, flush=True)
