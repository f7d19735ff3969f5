"""OpenSM with a plugin built with ASan and UBSan, and what the sanitizers reported of it."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from tests.worlds.live.site import plugin


def sanitized(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arguments of a site."""
    libasan = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    # umad2sim and OpenSM have errors of their own: go on after those, look for our frames below.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=1:halt_on_error=0")
    return {"plugin": plugin("libsarbridge-asan.so"), "preload": libasan}


def assert_clean(said: str) -> None:
    """`said` is the output of an OpenSM that has ended."""
    assert "runtime error" not in said, said[-4000:]
    memory, _, leaks = said.partition("ERROR: LeakSanitizer")
    assert "opensm_bridge/" not in memory, memory[-4000:]
    # OpenSM unloads the plugin before leaks are looked for, so its frames have no name then.
    # Deeper frames of OpenSM's own leaks may be nonsense; who allocated stands in the first.
    callers = re.findall(r"^\s*#1 .*$", leaks, re.MULTILINE)
    assert not [c for c in callers if "opensm_bridge/" in c or "unknown module" in c], leaks[:4000]
