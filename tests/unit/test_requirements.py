"""Messages of the simulated site when the machine lacks something."""

from __future__ import annotations

import os

import pytest

from sar_agent.errors import SarError
from sar_lab.live import requirements


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SarError, match=r"demo-live starts Slurm's daemons, .* run it as root"):
        requirements.require_everything("demo-live")


def test_all_that_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(program: str, package: str) -> str:
        if program in ("opensm", "munged"):
            raise SarError(f"no {program}")
        return program

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "find_program", nowhere)
    told = r"opensm \(Debian package opensm\), munged \(Debian package munge\); run: tests/"
    with pytest.raises(SarError, match=told):
        requirements.require_everything("demo-live")


def test_a_plugin_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirements.PLUGIN, raising=False)
    monkeypatch.setattr(requirements, "LIBRARY", "libnowhere.so")
    remedy = r"libnowhere\.so is not installed .* make -C opensm_bridge install, or set SAR_PLUGIN"
    with pytest.raises(SarError, match=remedy):
        requirements.plugin()
