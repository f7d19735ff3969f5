"""Where live tests can emulate a fabric."""

from __future__ import annotations

import os

import pytest

from sar_agent.errors import SarError
from sar_lab.emulate.namespaces import require_emulation


@pytest.fixture(autouse=True, scope="module")
def possible() -> None:
    """As root in CI a machine that cannot emulate is an error, elsewhere a reason to skip."""
    try:
        require_emulation()
    except SarError as error:
        if os.environ.get("CI") == "true" and not os.geteuid():
            raise
        pytest.skip(str(error))
