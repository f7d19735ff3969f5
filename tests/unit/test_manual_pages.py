"""Man pages and completion: every command, option and key is in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sar_agent.commands.manual_pages import FILES, command_pages, setting_groups
from sar_agent.config.model import Config


def test_every_command_and_key_is_there() -> None:
    manual = FILES["sar-agent.1"]().replace("\\-", "-")
    pages = command_pages()
    assert {"run", "once", "status", "topology check", "key list"} <= {page.name for page in pages}
    for page in pages:
        assert page.help and f".SS {page.name}\n" in manual
        for option in page.options:
            assert all(name in manual for name in option.names)
    settings = FILES["sar-agent.toml.5"]().replace("\\-", "-")
    groups = {name: keys for name, _, keys in setting_groups()}
    assert set(groups) == set(Config.model_fields)
    assert all(f"\\fB{key.name}\\fR = " in settings for keys in groups.values() for key in keys)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("sar-agent", "onc"), "once"),
        (("sar-agent", "topology", "che"), "check"),
        (("sar-agent", "once", "--js"), "--json"),
        (("sar-agent", "topology", "check", "--fab"), "--fabric"),
    ],
)
def test_bash_completes(words: tuple[str, ...], offered: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(FILES["sar-agent.bash"]())
    code = (
        f'. "{script}"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
        '_sar_agent; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [offered], done.stderr
