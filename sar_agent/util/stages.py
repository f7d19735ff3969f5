"""The time that each stage of a computation takes, for a recorder.

Code that does a stage's work runs `with stage("check"):` and does not know the recorder. The agent
records stages in its metrics (`record_stages`); a command records nothing. A recorder serves the
context (thread) that set it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Recorder = Callable[[str], AbstractContextManager[object]]
"""Called with a stage's name; what it returns is entered and left with the stage."""
_recorder: ContextVar[Recorder] = ContextVar("stages", default=nullcontext)


def stage(name: str) -> AbstractContextManager[object]:
    """A context that lasts as long as the stage `name`."""
    return _recorder.get()(name)


@contextmanager
def record_stages(recorder: Recorder) -> Iterator[None]:
    """Report all stages inside this context to `recorder`."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)
