"""Two agents for the tests of standby."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.standby_certificate import certificate
from tests.worlds.standby_sides import Side, two_sides


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("secret") / "standby.pem")


@pytest.fixture
def sides(tmp_path: Path, secret: Path) -> Iterator[tuple[Side, Side]]:
    with two_sides(tmp_path, secret) as made:
        yield made


@pytest.fixture
def led(sides: tuple[Side, Side]) -> tuple[Side, Side]:
    """The first leads, with generation 4 in force."""
    a, _ = sides
    a.lead()
    a.put(4)
    return sides
