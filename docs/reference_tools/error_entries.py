"""Every sentence with which a command or the agent refuses something, from the source code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

MEANINGS = {
    "InputError": ("2", "A file, an option or a name is wrong."),
    "TooMany": ("2", "The input asks for more than is allowed."),
    "ConfigError": ("2", "The configuration file is wrong."),
    "Unavailable": ("1", "Slurm, OpenSM or another program did not answer as it should."),
    "Unserved": ("1", "An engine cannot route this fabric."),
    "CheckFailed": ("1", "Routes failed a check, and are not installed."),
    "CreditLoop": ("1", "Routes could deadlock, and are not installed."),
    "NotSafe": ("1", "The way from the routes in force to the new ones is not safe."),
    "NotYet": ("1", "OpenSM is at work; the agent tries again."),
    "SarError": ("1", "The command cannot do this now."),
}
"""Classes of `sar_agent.errors` and a few others: exit code, and what they mean."""


@dataclass(frozen=True)
class ErrorEntry:
    """One sentence; values are written as an ellipsis."""

    room: str
    kind: str
    sentence: str
    remedy: str


def error_entries() -> Iterator[ErrorEntry]:
    """All errors of the package whose sentence is written where they are raised."""
    root = Path(str(files("sar_agent")))
    seen = set()
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        room = parts[parts[0] == "services"].removesuffix(".py")
        for entry in _in_file(room, file.read_text(encoding="utf-8")):
            if entry not in seen:
                seen.add(entry)
                yield entry


def _in_file(room: str, source: str) -> Iterator[ErrorEntry]:
    calls = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            calls.append(node.exc)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "disk_errors":
            calls.append(node)
    for call in sorted(calls, key=lambda call: call.lineno):
        if ast.unparse(call.func) == "disk_errors":  # raises for its body
            what, _, remedy = [*map(_text, call.args), ""][:3]
            yield ErrorEntry(room, "InputError", f"{what} (…)", remedy)
            continue
        kind = call.func.id if isinstance(call.func, ast.Name) else ""
        sentence = _text(call.args[0]) if kind in MEANINGS and call.args else ""
        if len(sentence.strip("… ;:")) > 8:
            remedy = next((_text(k.value) for k in call.keywords if k.arg == "remedy"), "")
            yield ErrorEntry(room, kind, sentence, remedy)


def _text(node: ast.expr) -> str:
    """What a literal says; an ellipsis for the values in it, and for any other expression."""
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr(values=parts):
            words = (
                str(p.value) if isinstance(p, ast.Constant) else _value(p.value)
                for p in parts
                if isinstance(p, ast.Constant | ast.FormattedValue)
            )
            return " ".join("".join(words).split())
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_text(left)} {_text(right)}"
        case ast.Call():
            return _value(node)
    return "…"


def _value(node: ast.expr) -> str:
    """An ellipsis, and the words behind a number in many: `plural(n, "job")`."""
    match node:
        case ast.Call(func=ast.Name(id="plural"), args=[_, ast.Constant(value=str(one)), *many]):
            return f"… {ast.literal_eval(many[0]) if many else f'{one}s'}"
    return "…"
