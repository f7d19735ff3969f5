"""An observer of the pass can be deleted, its file and its line: all else works as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sar_agent.agent.observers import OBSERVERS

ROOT = Path(__file__).parents[2]
WHERE = "sar_agent/agent/observers"
KEPT = ("sar_agent", "sar_lab", "tests", "docs", "deploy", "ARCHITECTURE.md", "pyproject.toml")


def copy_without(observer: str, tree: Path) -> None:
    """The repository at `tree`, without the observer."""
    for name in KEPT:
        if (ROOT / name).is_dir():  # kernels that are compiled already come along
            shutil.copytree(ROOT / name, tree / name)
        else:
            shutil.copy2(ROOT / name, tree / name)
    (tree / WHERE / f"{observer}.py").unlink()
    listed, line = tree / WHERE / "__init__.py", f'    "{observer}",\n'
    text = listed.read_text()
    assert text.count(line) == 1
    listed.write_text(text.replace(line, ""))


def _rest_of_tests(observer: str, tree: Path) -> list[str]:
    """The unit tests of an agent that do not name the observer."""
    own = f"observers.{observer} ", f'observers["{observer}"]'
    texts = {path: path.read_text() for path in sorted((tree / "tests/unit").glob("test_*.py"))}
    return [
        str(path.relative_to(tree))
        for path, text in texts.items()
        if ("fake_opensm" in text or "agent_world import" in text)
        and not any(name in text for name in own)
        and path.name != Path(__file__).name
    ]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_all_else_works_without_an_observer(observer: str, tmp_path: Path) -> None:
    copy_without(observer, tmp_path)
    files = _rest_of_tests(observer, tmp_path)
    assert len(files) > 10
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", *files],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
