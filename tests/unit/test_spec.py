"""`load_fabric`: what it recognises and how it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.subnet_lst import write_subnet_lst
from tests.fabric_texts import SMALL


def test_by_content_not_by_extension(tmp_path: Path) -> None:
    fabric = read_ibnetdiscover(SMALL)
    (tmp_path / "a.lst").write_text(SMALL)
    write_ibsim_net(fabric, tmp_path / "b.txt")
    write_subnet_lst(fabric, assign_lids(fabric), tmp_path / "c.net")
    (tmp_path / "d").write_text(SMALL[SMALL.index("vendid") :])  # scrolled out of the capture
    for name in ("a.lst", "b.txt", "c.net", "d"):
        loaded = load_fabric(str(tmp_path / name))
        assert loaded.digest == fabric.digest
        assert loaded.name == str(tmp_path / name)


def test_xgft() -> None:
    assert load_fabric("xgft:2;4,4;1,2").terminals == 16


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file; check the path"),
        (b"", "is empty; write it again"),
        (b" \r\n\n", "is empty; write it again"),
        (b"\x7fELF\0\0\0", "is a binary file; give a text file"),
        (b"\x1f\x8bnonsense", "damaged gzip file"),
        (b"root:x:0:0\n", "not a fabric in any known format"),
    ],
)
def test_files_that_are_none(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_fabric(str(path))
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        load_fabric(str(tmp_path))


@pytest.mark.parametrize("spec", ["hyperx:4x4", "x:" + "y" * 999])
def test_unknown_spec(spec: str) -> None:
    known = "no such kind of fabric; known are xgft:, dragonfly:, torus:"
    with pytest.raises(InputError, match=known):
        load_fabric(spec)


@pytest.mark.parametrize("path", ["a\0b", "y" * 999])
def test_impossible_paths(path: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_fabric(path)
