"""The plugin's C reader and the Python reader give the same verdict on the same bytes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sar_agent.errors import InputError
from sar_agent.formats.routes_file import decode, encode
from tests.worlds.live.built import built
from tests.worlds.routes_vectors import damaged, lying, small_routes, valid_images


@pytest.fixture(scope="module")
def checker() -> Path:
    """The C reader behind a command line, built with ASan and UBSan."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("no gcc or make to build the C reader with")
    return built("opensm_bridge", "routes_check")


def c_verdicts(checker: Path, folder: Path, images: Iterable[bytes]) -> list[str]:
    """What the C reader says of each image: "ok …" or the reason."""
    names = []
    for number, image in enumerate(images):
        (folder / f"{number}.sar").write_bytes(image)
        names.append(f"{number}.sar")
    run = subprocess.run([checker, *names], cwd=folder, capture_output=True, text=True, check=False)
    assert run.stderr == "", "a sanitizer has something to say"
    assert run.returncode in (0, 1)
    return [line.split(": ", 1)[1] for line in run.stdout.splitlines()]


def python_accepts(image: bytes) -> bool:
    try:
        decode(image)
    except InputError:
        return False
    return True


def test_both_accept_what_python_writes(checker: Path, tmp_path: Path) -> None:
    said = c_verdicts(checker, tmp_path, valid_images())
    assert len(said) == 22
    assert said[0] == "ok generation 7 engine sar-plus switches 3 terminals 4 offsets 1 lanes 1"
    assert all(words.startswith("ok ") for words in said)


KINDS = [
    {"lanes": 1},
    {"lanes": 2, "numbered": True},
    pytest.param({"lanes": 3, "hops": True}, marks=pytest.mark.long),
    pytest.param({"lanes": 1, "dumped": True}, marks=pytest.mark.long),
    {"lanes": 2, "hops": True, "dumped": True},
]


@pytest.mark.parametrize("kind", KINDS)
def test_both_refuse_each_flipped_byte_and_each_truncation(
    checker: Path, tmp_path: Path, kind: dict[str, Any]
) -> None:
    images = list(damaged(encode(small_routes(**kind))))
    said = c_verdicts(checker, tmp_path, images)
    assert len(said) == len(images)
    assert not [words for words in said if words.startswith("ok ")]
    assert not any(python_accepts(image) for image in images)


@pytest.mark.parametrize("kind", KINDS)
def test_both_agree_on_lies_under_right_checksums(
    checker: Path, tmp_path: Path, kind: dict[str, Any]
) -> None:
    images = list(lying(encode(small_routes(**kind))))
    said = c_verdicts(checker, tmp_path, images)
    verdicts = [python_accepts(image) for image in images]
    assert [words.startswith("ok ") for words in said] == verdicts
    assert any(verdicts) and not all(verdicts)


def test_missing_and_odd_files_get_a_sentence(checker: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.sar").symlink_to("/dev/zero")  # of a user who may write the folder
    run = subprocess.run(
        [checker, "gone.sar", "folder", "/dev/zero", "link.sar"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    gone, folder, zero, link = run.stdout.splitlines()
    assert "No such file" in gone
    assert "not regular" in folder and "not regular" in zero
    assert "it is a link" in link
