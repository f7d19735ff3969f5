"""The rooms of ARCHITECTURE.md's table are those of the code, and so are the imports between them.

A room may import only rooms above it in the table, and its row names them; so no arrow leads
upward and none closes a circle. A file belongs to the longest path of the table that holds it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(sar_\w+[\w/.]*)`(?:, `[\w/.]+`)* \|.*\| ([^|]+) \|$", re.M)
ALL_ABOVE = "all above"


def read_table(page: str) -> dict[str, list[str] | None]:
    """Rooms in the order of the table: the names of the rooms that each may import, or None for
    all above. A name is the path without `sar_agent/`, slashes at the end and `.py`."""
    return {
        name_of(path): None if imports == ALL_ABOVE else re.findall(r"[\w/]+", imports)
        for path, imports in ROW.findall(page)
    }


def name_of(path: str) -> str:
    return path.removeprefix("sar_agent/").removesuffix(".py").rstrip("/")


TABLE = read_table((ROOT / "ARCHITECTURE.md").read_text())


def room_of(path: str) -> str | None:
    """The room of a module's path such as `routing/lanes/grid`; None if no row names it."""
    parts = path.split("/")
    candidates = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in candidates if name in TABLE), None)


def imported_modules(source: str) -> Iterator[str]:
    """Names of modules of ours; of `from sar_agent import x` the module x."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of(file: Path) -> set[str]:
    """Rooms that a file imports from; the version number in `sar_agent/__init__.py` has none."""
    paths = (
        module.replace(".", "/").removeprefix("sar_agent/")
        for module in imported_modules(file.read_text())
        if module.startswith(("sar_agent.", "sar_lab."))
    )
    return {room for path in paths if (room := room_of(path)) is not None}


def files() -> dict[Path, str]:
    """Every module of both packages, with its room;
    `cli.py` is the commands' own."""
    found = {}
    for file in [*(ROOT / "sar_agent").rglob("*.py"), *(ROOT / "sar_lab").rglob("*.py")]:
        path = name_of(str(file.relative_to(ROOT)))
        if path not in {"__init__", "cli"}:
            found[file] = room_of(path) or f"no row: {path}"
    return found


FILES = files()


def test_every_file_is_in_a_room_and_every_room_has_files() -> None:
    assert len(TABLE) > 15
    assert set(FILES.values()) == {room for room in TABLE if not is_service(room) or is_there(room)}


def is_service(room: str) -> bool:
    return room.split("/")[0] == "services"


def is_there(room: str) -> bool:
    return (ROOT / "sar_agent" / room).exists()


NOT_YET = {"services/keys", "services/five_phase", "services/archive"}
"""Rooms that the core imports still."""


def test_the_core_imports_no_service_and_no_service_another() -> None:
    for file, room in FILES.items():
        own = str(file.relative_to(ROOT / "sar_agent").parent) if is_service(room) else ""
        for module in imported_modules(file.read_text()):
            folder = "/".join(module.split(".")[1:3])
            if module.startswith("sar_agent.services.") and folder not in NOT_YET:
                assert room.startswith("sar_lab") or own.startswith(folder), f"{file}: {module}"


@pytest.mark.parametrize("room", TABLE)
def test_a_room_imports_what_its_row_names(room: str) -> None:
    above = list(TABLE)[: list(TABLE).index(room)]
    listed = above if TABLE[room] is None else TABLE[room]
    assert listed is not None
    assert set(listed) <= set(above), "the row names a room that is not above it"
    wrong = {}
    used: set[str] = set()
    for file, its_room in FILES.items():
        if its_room == room:
            imports = imports_of(file) - {room}
            used |= imports
            if unlisted := imports - set(listed):
                wrong[str(file.relative_to(ROOT))] = sorted(unlisted)
    assert not wrong
    if TABLE[room] is not None and (not is_service(room) or is_there(room)):
        assert used == set(listed), f"the row should be: {', '.join(sorted(used)) or '–'}"


def test_the_table_is_read_as_it_is_written() -> None:
    page = (
        "| `sar_agent/a.py` | x | – |\n| `sar_agent/b/c/` | y | a |\n| `sar_lab/` | | all above |\n"
    )
    assert read_table(page) == {"a": [], "b/c": ["a"], "sar_lab": None}


def test_imports_in_functions_and_of_a_package_s_modules_count() -> None:
    source = "def f():\n    from sar_agent import fabric\n    import sar_lab.fluid\n"
    assert set(imported_modules(source)) == {"sar_agent.fabric", "sar_lab.fluid"}


def test_worlds_import_no_circle() -> None:
    """Each file of the tests can be run by itself, whatever pytest has loaded before."""
    files = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", "."): path
        for path in (ROOT / "tests/worlds").rglob("*.py")
    }
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in files.items():
        for node in ast.parse(path.read_text()).body:  # what stands under TYPE_CHECKING is not run
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = (f"{node.module}.{alias.name}" for alias in node.names)
                graph.add_edges_from((name, m) for m in (node.module, *inner) if m in files)
    assert list(nx.simple_cycles(graph)) == []
