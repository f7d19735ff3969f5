"""The answer to a message: lines `key value`, ended by an empty line (slurm_spank/PROTOCOL.md).

C programs read the same lines (libs/client/answer.c), so a value is a word, a number or one
sentence. What only Python reads, such as a list of keys, is JSON.

    >>> encode_answer({"ok": True, "wait": 0.25, "env": {"UCX_IB_SL": "1", "A": "b=c"}})
    b'ok\\nwait 0.25\\nenv UCX_IB_SL=1\\nenv A=b=c\\n\\n'
    >>> decode_answer(b"error no such job\\n\\n")
    {'ok': False, 'error': 'no such job'}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

TEXTS = frozenset({"error", "job", "note", "phase", "sentence", "state"})
"""Keys whose values are texts."""
LONGEST_ANSWER = 65536
"""Bytes of an answer that a client reads, at most."""


def encode_answer(answer: Mapping[str, Any]) -> bytes:
    """The lines of an answer; with a false `ok`, only those of its `error`."""
    if not answer.get("ok", True):
        return _line("error", answer.get("error", "")) + b"\n"
    lines = [b"ok\n"]
    for key, value in answer.items():
        if key == "env":
            lines += [_line(key, f"{name}={text}") for name, text in value.items()]
        elif key != "ok" and value is not None:
            lines.append(_line(key, value))
    return b"".join(lines) + b"\n"


def _line(key: str, value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    # A control character would end the line, or look like another line in a log.
    text = "".join(" " if c < " " else c for c in text)
    return f"{key} {text}\n".encode(errors="replace")


def decode_answer(lines: bytes) -> dict[str, Any]:
    """The answer that `lines` encode. Raises `ValueError` if they are none, or not complete."""
    whole, end, _ = lines.decode(errors="replace").partition("\n\n")
    first, *others = whole.split("\n")
    if not end or (first != "ok" and not first.startswith("error ")):
        raise ValueError("not an answer")
    if first != "ok":
        return {"ok": False, "error": first.removeprefix("error ")}
    answer: dict[str, Any] = {"ok": True}
    for line in others:
        key, _, value = line.partition(" ")
        if key == "env":
            name, _, text = value.partition("=")
            answer.setdefault("env", {})[name] = text
        else:
            answer[key] = value if key in TEXTS else json.loads(value)
    return answer
