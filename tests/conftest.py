"""Settings of every test: hypothesis tries the share of its examples that was asked for."""

from __future__ import annotations

import os

from hypothesis import settings

from tests.examples import examples

os.environ.setdefault("SAR_ASK_OPENSM", "no")  # only live tests start daemons; theirs say so
settings.register_profile("share", examples())
settings.load_profile("share")
