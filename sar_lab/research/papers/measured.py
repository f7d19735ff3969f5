"""Raw draws: what measuring functions gave, kept beside the result of a row, so that claims, tables
and pictures are made again without a rerun (`lab run --judge`).

Beside them is what code made them (`draw_code.py`). Draws of other code are *stale*: they are
named, and measured again if the row asks for `fresh` ones. What only a quiet machine can measure is
taken from the record alone, unless its row is run by name.

A measuring function is decorated, takes what has one `repr` (names, numbers, frozen records), and
gives what its type says: numbers, text, lists, tuples, mappings and records of these. A number
keeps ten digits, whether it was measured or read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from sar_agent.errors import InputError
from sar_lab.research.papers.draw_code import Code, roots_of

Given = TypeVar("Given")
Key = TypeVar("Key")
Draws = dict[str, Any]
"""Call → what it gave, as JSON."""
Stale = dict[str, list[str]]
"""Root → the modules that are not as they were; none where the draws do not say what made them."""
SAVED_EVERY = 30.0
"""Seconds."""


class NotMeasured(Exception):
    """The record lacks a draw of a row that is made of its record alone."""


_kept: Draws = {}
_code: dict[str, Code] = {}
_stale: Stale = {}
_fresh = False
_recorded = False
_save: Callable[[], object] = int
_saved = 0.0


def begin(
    draws: Draws,
    save: Callable[[], object] = int,
    code: dict[str, Code] | None = None,
    fresh: bool = False,
    recorded: bool = False,
) -> Draws:
    """What the row that runs next keeps its draws in; those that are there are not measured again,
    unless `fresh` ones are asked for and other code made them: `code` is what did, by root. With
    `recorded`, those that are not there raise `NotMeasured`. `save` is called now and then, so that
    a killed row does not lose what it measured."""
    global _kept, _code, _stale, _fresh, _recorded, _save, _saved
    _recorded = recorded
    _kept, _code, _stale, _fresh = draws, {} if code is None else code, {}, fresh
    _save, _saved = save, time.monotonic()
    return draws


def stale() -> Stale:
    """What was found stale since `begin`."""
    return _stale


def measured(function: Callable[..., Given]) -> Callable[..., Given]:
    """The same function, whose results are kept."""

    @wraps(function)
    def once(*args: Any, **named: Any) -> Given:
        words = [*map(repr, args), *(f"{name}={each!r}" for name, each in named.items())]
        call = f"{function.__name__}({', '.join(words)})"
        for root, code in roots_of(function, call).items():
            _look(root, code)
        if call not in _kept:
            if _recorded:
                raise NotMeasured(call)
            _keep(call, _plain(function(*args, **named)))
        kind = get_type_hints(function)["return"]
        try:
            found: Given = _typed(_kept[call], kind)
        except (TypeError, ValueError, KeyError, IndexError, StopIteration) as error:
            raise InputError(
                f"the kept draw {call} is not what the function gives", remedy="run the row again"
            ) from error
        return found

    return once


def _look(root: str, code: Code) -> None:
    """Whether the draws of a root are of this code."""
    if root in _stale or _code.get(root) == code:
        return
    engine = root.removeprefix("engine ")
    made = [
        call
        for call in _kept
        if (f"'{engine}'" in call if engine != root else call.startswith(f"{root}("))
    ]
    if made:
        before = _code.get(root, code)
        both = before.keys() | code.keys()
        _stale[root] = sorted(each for each in both if before.get(each) != code.get(each))
        if not _fresh:
            return
    for call in made:
        del _kept[call]
    _code[root] = code


def by_key(draws: Iterable[Mapping[Key, Given]]) -> dict[Key, list[Given]]:
    """What every draw has of a key, by key, in the order of the draws."""
    found: dict[Key, list[Given]] = {}
    for draw in draws:
        for key, each in draw.items():
            found.setdefault(key, []).append(each)
    return found


def _keep(call: str, found: Any) -> None:
    global _saved
    _kept[call] = found
    if time.monotonic() > _saved + SAVED_EVERY:
        _save()
        _saved = time.monotonic()


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    plain = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(each) for each in plain] if isinstance(plain, Sequence) else _plain(plain)


def _typed(value: Any, kind: Any) -> Any:
    """What `_plain` was given, by its type."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if isinstance(origin, type) and (is_dataclass(origin) or hasattr(origin, "_fields")):
        hints = get_type_hints(origin)
        return origin(*(_typed(each, hints[name]) for each, name in zip(value, hints, strict=True)))
    if origin is UnionType and value is not None:
        return _typed(value, next(each for each in inner if each is not NoneType))
    if origin is dict:
        return {_typed(key, inner[0]): _typed(each, inner[1]) for key, each in value}
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        return origin(_typed(each, inner[0]) for each in value)
    if origin is tuple:
        return tuple(_typed(each, kind) for each, kind in zip(value, inner, strict=True))
    return value
