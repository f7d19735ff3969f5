"""How many examples are tried: as many as a test says, or a share of them."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

SHARE = float(os.environ.get("SAR_EXAMPLES", "1"))
"""`make test-fast` takes a tenth; `SAR_EXAMPLES=10 make test` looks harder."""


def share(most: int) -> int:
    """For a loop over `most` seeds, and for what is to come out of it."""
    return max(2, round(most * SHARE))


def examples(most: int = 100, **more: Any) -> settings:
    """Decorates a test that is `given`. No deadline: a kernel may be compiled on the way."""
    return settings(deadline=None, max_examples=share(most), **more)
