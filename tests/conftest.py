"""Settings of every test: hypothesis tries the share of its examples that was asked for."""

from __future__ import annotations

from hypothesis import settings

from tests.examples import examples

settings.register_profile("share", examples())
settings.load_profile("share")
