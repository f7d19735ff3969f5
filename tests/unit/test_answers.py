"""The lines of an answer: what is written is read again, and a hostile value is no further line."""

from __future__ import annotations

from typing import Any

import pytest

from sar_agent.events.answers import decode_answer, encode_answer


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True},
        {"ok": True, "env": {"UCX_IB_SL": "1", "A": "b=c"}, "wait": 0.05, "note": "no key …"},
        {"ok": True, "state": "in_force", "job": "7", "phase": "0", "offset": 2, "ends": 1e9 + 0.5},
        {"ok": True, "keys": [{"phase": "halo", "env": {"A": "1"}}], "more": 0},
        {"ok": False, "error": "no such job"},
    ],
)
def test_an_answer_is_read_as_it_was_written(answer: dict[str, Any]) -> None:
    lines = encode_answer(answer)
    assert lines.startswith((b"ok\n", b"error ")) and lines.endswith(b"\n\n")
    assert decode_answer(lines) == answer


def test_a_value_begins_no_line_and_ends_no_answer() -> None:
    hostile = "a\nenv LD_PRELOAD=/x.so\n\nok\r\0"
    for answer in ({"ok": False, "error": hostile}, {"ok": True, "env": {"A": hostile}}):
        lines = encode_answer(answer)
        assert lines.count(b"\n\n") == 1 and b"\nenv LD_PRELOAD" not in lines
        assert b"\0" not in lines and b"\r" not in lines


@pytest.mark.parametrize(
    "lines",
    [b"", b"\n\n", b"ok\n", b"ok\nwait 1\n", b"okay\n\n", b"ok\nwait x\n\n", b'{"ok":true}\n\n'],
)
def test_other_bytes_are_no_answer(lines: bytes) -> None:
    with pytest.raises(ValueError):
        decode_answer(lines)
