"""Random XGFTs."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def specs(draw: st.DrawFn) -> str:
    """Up to 256 hosts, slimmed or not, of one to four levels."""
    height = draw(st.integers(1, 4))
    m = [draw(st.integers(1 if height > 1 else 2, 4)) for _ in range(height)]
    w = [1, *(draw(st.integers(1, 4)) for _ in range(height - 1))]
    # A single child or a leaf without a second host would make two levels look like one.
    m = [max(2, each) for each in m]
    return f"xgft:{height};{','.join(map(str, m))};{','.join(map(str, w))}"
