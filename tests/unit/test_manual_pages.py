"""Man pages and completion: every command, option and key is in them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.reference_tools.command_entries import command_entries
from docs.reference_tools.config_entries import config_entries
from docs.reference_tools.manual_pages import FILES
from sar_agent.config.model import Config


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
