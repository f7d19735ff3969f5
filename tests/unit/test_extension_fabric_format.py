"""A fabric format from a package outside the tree, read from a file and from a command's output."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_agent.agent.fabric_source import read_fabric
from sar_agent.config.model import parse_config
from sar_agent.errors import InputError
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric, parse_fabric
from tests.extension import installed_package
from tests.fabric_texts import SMALL

STAR = "STAR of 3 hosts\n"
READER = """
    import re
    from sar_agent.fabric.builder import FabricBuilder

    class Star:
        \"\"\"One switch and its hosts: `STAR of 3 hosts`.\"\"\"

        def recognises(self, text):
            return text.startswith("STAR ")

        def read(self, text, name, mapper):
            builder = FabricBuilder(name)
            builder.add_switch(1, "centre", 36)
            for port in range(1, 1 + int(re.search("[0-9]+", text)[0])):
                host = (mapper(f"n{port}.site HCA-1").host if mapper else None) or f"n{port}"
                builder.add_terminal(100 + port, f"n{port} HCA-1", host, 0, port)
            return builder.build()
"""


@contextmanager
def format_installed(folder: Path, source: str = READER, name: str = "Star") -> Iterator[None]:
    points = f"[sar_agent.fabric_formats]\nstar = toy_format:{name}\n"
    with installed_package(folder, "toy_format", source, points):
        yield


def test_a_file_is_read_and_ours_are_still_recognised(tmp_path: Path) -> None:
    (tmp_path / "fabric").write_text(STAR)
    (tmp_path / "small").write_text(SMALL)
    with format_installed(tmp_path):
        fabric = load_fabric(tmp_path / "fabric")
        assert (fabric.switches, fabric.terminal_host) == (1, ("n1", "n2", "n3"))
        assert load_fabric(tmp_path / "small").digest == read_ibnetdiscover(SMALL).digest
        with pytest.raises(
            InputError, match=r"known formats are db_csv, ibnetdiscover, net, ports, star, subnet"
        ):
            parse_fabric("root:x:0:0\n", "passwd")
    with pytest.raises(
        InputError, match=r"known formats are db_csv, ibnetdiscover, net, ports, subnet\.lst$"
    ):
        load_fabric(tmp_path / "fabric")


def test_what_the_agent_s_command_prints_may_be_of_it(tmp_path: Path) -> None:
    echo = shutil.which("echo")
    config = parse_config(f'[fabric]\ncommand = ["{echo}", "{STAR.strip()}"]').fabric
    with format_installed(tmp_path):
        fabric = read_fabric(config)
        assert fabric.terminals == 3 and fabric.name == echo
    config = parse_config(f'[fabric]\ncommand = ["{echo}", "{STAR.strip()} again"]').fabric
    with pytest.raises(InputError, match=f"^{echo}: not a fabric in any known format"):
        read_fabric(config)


def test_a_broken_package_does_not_hide_the_others(tmp_path: Path) -> None:
    with format_installed(tmp_path, "import no_such_module", "Star"):
        assert parse_fabric(SMALL, "small").digest == read_ibnetdiscover(SMALL).digest
        with pytest.raises(InputError, match=r"'star' of toy-toy_format 0\.1 cannot be loaded"):
            parse_fabric(STAR, "star")
