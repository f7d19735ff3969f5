"""Rows *emulated*: what a busy machine measured is not counted."""

from __future__ import annotations

from sar_lab.research.papers.emulated import EmulatedDraw, EmulatedTimes, slower


def draw(slow: float, fast: float, idle: float = 0.5) -> EmulatedDraw:
    times = (EmulatedTimes("a", slow, idle), EmulatedTimes("b", fast, 0.5))
    return EmulatedDraw("xgft:2;4,4;1,2", 16, "ring", 2.0, 5, "2 processors", "2026-11-28", times)


def test_an_order_is_judged_by_the_draws_that_count() -> None:
    held = slower([draw(3, 2), draw(1, 2, idle=0.24), draw(0, 2)], "a", "b", "a slower")
    assert (held.holds, held.ours) == (True, "1.50 times, 1 of 3 counted")
    assert slower([draw(1, 2)], "a", "b", "a slower").holds is False
    assert slower([draw(3, 2), draw(1, 2)], "a", "b", "they disagree").holds is None
    assert slower([draw(3, 2, idle=0.1)], "a", "b", "busy").holds is None
