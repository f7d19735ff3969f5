"""What code a draw was made by: a digest of all that a measuring function reaches.

Draws outlive the code that made them, and a row judged from old draws tells nothing of today's
code. A *root* is a measuring function or an engine, which is loaded by its name. From a root's
definition the names are followed that it uses, in our packages and its own, through imports,
classes, constants and annotations, so what a row only judges or draws with does not count.
Comments, docstrings and layout do not count either.

**Weak spot:** a method is reached through the class that an annotation or a call names; one that
only a string or a table outside of Python names is not, nor is a library, nor a data file.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOMS = {"sar_agent", "sar_lab"}
"""Packages that are followed, and that of a measuring function of another one."""
GROUP = "sar_agent.engines"
OTHER = tuple(f"sar_lab.research.papers.{name}" for name in ("measured", "pictures"))
"""What measures nothing: the decorator, and labels."""
MESSAGES = {("sar_agent.routing.engine", "site_engines")}
"""Definitions of messages: the engines that the loader offers for a name that nobody has."""
Code = dict[str, str]
"""Module → digest of its definitions that a root reaches."""
Definition = tuple[str, str]
"""Module, name."""
_SIZE = 8


def roots_of(function: Callable[..., Any], call: str) -> dict[str, Code]:
    """Root → its code, for a call of a measuring function: the function, and the engines that the
    words of the call name."""
    ROOMS.add(function.__module__.split(".")[0])
    found = {function.__name__: _code((function.__module__, function.__name__))}
    for name in re.findall(r"'([\w-]+)'", call):
        if name in _engines():
            found[f"engine {name}"] = _code(_engines()[name])
    return found


@cache
def _engines() -> dict[str, Definition]:
    """The name of an engine → its class."""
    return {
        each.name: (each.module, each.attr)
        for each in entry_points(group=GROUP)
        if each.module.split(".")[0] in ROOMS
    }


@cache
def _code(root: Definition) -> Code:
    """All that a definition reaches, by module."""
    known: set[Definition] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if each not in known:
            known.add(each)
            waiting += _uses(each)
    words: dict[str, list[str]] = {}
    for module, name in sorted(known):
        if node := _definitions(module).get(name):
            words.setdefault(module, []).append(f"{name}\n{ast.dump(node)}")
    return {
        module: hashlib.sha256("\n".join(each).encode()).hexdigest()[:_SIZE]
        for module, each in words.items()
    }


@cache
def _uses(of: Definition) -> tuple[Definition, ...]:
    """What a definition names, in its module and in others."""
    module, name = of
    imported = _imports(module)
    node = _definitions(module).get(name)
    if node is None:  # a name that the module has from another one
        return (imported[name],) if name in imported else ()
    inner = {**imported, **dict(_imported(node, module))}
    found: list[Definition] = [d for d in inner.values() if d not in imported.values()]
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.append(inner.get(part.id, (module, part.id)))
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            to = inner.get(part.value.id, ("", ""))
            found.append((".".join(filter(None, to)), part.attr))
        elif isinstance(part, ast.Constant) and part.value in _engines():
            found.append(_engines()[part.value])
    return tuple(d for d in found if d != of and d not in MESSAGES and _source(d[0]))


@cache
def _source(module: str) -> Path | None:
    """The file of a module of this repository; None of others and of what is no module."""
    if module.split(".")[0] not in ROOMS or module in OTHER:
        return None
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


@cache
def _tree(module: str) -> ast.Module:
    """Without docstrings, and what else is a text of its own."""
    path = _source(module)
    tree = ast.parse(path.read_text() if path else "")
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [line for line in body if not _is_text(line)] or [ast.Pass()]
    return tree


def _is_text(line: ast.AST) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _lines(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for line in body:
        yield line
        for name in ("body", "orelse", "finalbody") if isinstance(line, ast.If | ast.Try) else ():
            yield from _lines(getattr(line, name, []))


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for line in _lines(_tree(module).body):
        if isinstance(line, ast.FunctionDef | ast.ClassDef):
            found[line.name] = line
        elif isinstance(line, ast.Assign | ast.AnnAssign):
            for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found[name.id] = line
    return found


@cache
def _imports(module: str) -> dict[str, Definition]:
    return {
        name: of
        for line in _lines(_tree(module).body)
        if isinstance(line, ast.Import | ast.ImportFrom)
        for name, of in _imported(line, module)
    }


def _imported(node: ast.AST, module: str) -> Iterator[tuple[str, Definition]]:
    """The names that imports in a definition bind; a module is a definition without a name."""
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and part.module:
            for alias in part.names:
                whole = f"{part.module}.{alias.name}"
                of = (whole, "") if _source(whole) else (part.module, alias.name)
                yield alias.asname or alias.name, of
        elif isinstance(part, ast.Import):
            for alias in part.names:
                yield alias.asname or alias.name, (alias.name, "")
