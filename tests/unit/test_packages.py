"""The two packages as they are installed: apart from each other and from the source tree. Man pages
and completion: every command, option and key is in them. Messages of the simulated site when the
machine lacks something."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reference_tools.command_entries import command_entries
from docs.reference_tools.config_entries import config_entries
from docs.reference_tools.manual_pages import FILES
from sar_agent import __version__
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_lab.live import requirements

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for package in ("sar_agent", "sar_lab")
    for path in (ROOT / package).rglob("*.py")
    if "build" not in path.parts
)
LAB = tomllib.loads((ROOT / "sar_lab/pyproject.toml").read_text())


def paths_upward(tree: ast.AST) -> Iterator[int]:
    """Lines that lead out of the package: `__file__` with `parents` or twice `parent`, or "../"."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
        if "__file__" in text and ("parents" in text or ".parent.parent" in text):
            yield node.lineno  # type: ignore[attr-defined]
        if isinstance(node, ast.Constant) and str(node.value).startswith("../"):
            yield node.lineno


def test_no_module_refers_to_a_path_above_its_package() -> None:
    lines = [
        f"{source}:{line}"
        for source in SOURCES
        for line in paths_upward(ast.parse((ROOT / source).read_text()))
    ]
    assert lines == []


def test_every_subpackage_of_the_laboratory_is_in_its_wheel() -> None:
    folders = {".".join(source.parent.parts) for source in SOURCES if source.parts[0] == "sar_lab"}
    assert set(LAB["tool"]["setuptools"]["packages"]) == folders


def test_the_laboratory_needs_the_agent_of_its_own_version() -> None:
    assert LAB["project"]["version"] == __version__
    assert f"sar-agent=={__version__}" in LAB["project"]["dependencies"]


def test_no_test_file_imports_another() -> None:
    """What several share lies in tests/worlds."""
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"^ *from tests\.\S*\.test_", path.read_text(), re.MULTILINE), path


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SarError, match=r"emulate --live starts Slurm's daemons, .* run it as root"):
        requirements.require_everything("emulate --live")


def test_all_that_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(program: str, package: str) -> str:
        if program in ("opensm", "munged"):
            raise SarError(f"no {program}")
        return program

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "find_program", nowhere)
    told = r"opensm \(Debian package opensm\), munged \(Debian package munge\); run: tests/"
    with pytest.raises(SarError, match=told):
        requirements.require_everything("emulate --live")


def test_a_plugin_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirements.PLUGIN, raising=False)
    monkeypatch.setattr(requirements, "LIBRARY", "libnowhere.so")
    remedy = r"libnowhere\.so is not installed .* make -C opensm_bridge install, or set SAR_PLUGIN"
    with pytest.raises(SarError, match=remedy):
        requirements.plugin()


def test_every_command_and_key_is_there() -> None:
    manuals = {name: FILES[f"{name}.1"]().replace("\\-", "-") for name in ("sar-agent", "sar-lab")}
    commands = list(command_entries())
    assert {"run", "once", "status", "topology check", "key list", "replay"} <= {
        c.words for c in commands
    }
    for command in commands:
        manual = manuals[command.program]
        assert command.help and f".SS {command.words}\n" in manual
        for option in command.options:
            named = option.names if option.names[0].startswith("-") else (option.value,)
            assert all(name in manual for name in named)
    settings = FILES["sar-agent.toml.5"]().replace("\\-", "-")
    keys = list(config_entries())
    assert {key.section for key in keys} == set(Config.model_fields)
    assert all(f"\\fB{key.key}\\fR = " in settings for key in keys)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("sar-agent", "onc"), "once"),
        (("sar-agent", "topology", "che"), "check"),
        (("sar-agent", "once", "--js"), "--json"),
        (("sar-agent", "topology", "check", "--fab"), "--fabric"),
        (("sar-lab", "lab", "ru"), "run"),
    ],
)
def test_bash_completes(words: tuple[str, ...], offered: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(FILES[f"{words[0]}.bash"]())
    code = (
        f'. "{script}"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
        f'_{words[0].replace("-", "_")}; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [offered], done.stderr


def test_every_option_of_sar_notify_is_in_its_manual() -> None:
    folder = Path(__file__).parents[2] / "slurm_spank"
    usage = re.search(r"usage\[\] =(.*?);\n\n", (folder / "sar_notify.c").read_text(), re.DOTALL)
    assert usage
    options = re.findall(r'^\t"  (\w+)=', usage[1], re.MULTILINE)
    assert {"agent", "timeout", "debug"} <= set(options)
    manual = (folder / "sar-notify.1").read_text()
    described = re.findall(r"^\.TP\n\\fB(\w+)\\fR=", manual, re.MULTILINE)
    assert described == options
