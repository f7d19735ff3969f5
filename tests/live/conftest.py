"""What holds for every live test: programs under ibsim have the kernel's time limits for MADs."""

from __future__ import annotations

import os

from sar_lab.live.ibsim import TIMEOUTS
from tests.live.helpers.built import built


def pytest_configure() -> None:
    os.environ[TIMEOUTS] = str(built("opensm_bridge", "libumad_timeouts.so"))
