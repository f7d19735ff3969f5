"""Lines of forwarding tables: the same for every switch, but for the port."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric.model import U8
from sar_agent.routing.routes import NO_ROUTE

_DIGITS = np.frombuffer(b"".join(b"%03d" % port for port in range(256)), np.uint8).reshape(256, 3)


class PortLines:
    """One line for each destination: what stands before the port, three digits, the rest. The text
    is made once; for each switch only the digits are written into it."""

    def __init__(self, begin: Sequence[bytes], end: Sequence[bytes]) -> None:
        lines = [b"%s000%s" % pair for pair in zip(begin, end, strict=True)]
        self._text = np.frombuffer(b"".join(lines), np.uint8).copy()
        self._length = np.array([len(line) for line in lines], np.int64)
        first = np.cumsum(self._length) - self._length + [len(text) for text in begin]
        self._digits = first.astype(np.int64)[:, None] + np.arange(3)

    def text(self, ports: U8) -> bytes:
        """The lines of a switch, from uint8[destinations]; 255 has no line."""
        self._text[self._digits] = _DIGITS[ports]
        kept = ports != NO_ROUTE
        lines = self._text if kept.all() else self._text[np.repeat(kept, self._length)]
        return bytes(lines)
