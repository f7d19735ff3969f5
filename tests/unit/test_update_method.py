"""The method by which a plan comes into force, by mode."""

from __future__ import annotations

from datetime import datetime

import pytest

from sar_agent.agent.update_strategy import UpdateContext, UpdateMethod, choose_update
from sar_agent.check.transition import Transition, Way
from sar_agent.config.model import ConfigError, parse_config
from sar_agent.config.update import UpdateConfig, Window

NOON = datetime(2026, 11, 21, 12, 0)  # a Saturday
SAFE, UNSAFE = Transition(Way.DIRECT, "", ()), Transition(Way.UNSAFE, "a circle at S1", ())
STAGED = Transition(Way.STAGED, "a circle at S1", ())
UNPROVED = Transition(Way.UNPROVED, "a circle in force", ())
KNOWN = (Way.SAME, Way.DIRECT, Way.STAGED, Way.FITTED, Way.UNPROVED)
"""All others are never installed because of what somebody says."""


def how(
    transition: Transition | None, site: UpdateContext, now: datetime = NOON, **keys: object
) -> UpdateMethod:
    return choose_update(UpdateConfig.model_validate(keys), transition, site, now).how


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (None, UpdateMethod.DIRECT),
        (SAFE, UpdateMethod.DIRECT),
        (UNPROVED, UpdateMethod.DIRECT),
        (STAGED, UpdateMethod.STAGED),
        (UNSAFE, UpdateMethod.REFUSE),
    ],
)
def test_fast_wants_a_proof(transition: Transition | None, expected: UpdateMethod) -> None:
    assert how(transition, UpdateContext(jobs=2)) is expected
    choice = choose_update(UpdateConfig(), UNSAFE, UpdateContext(jobs=2), NOON)
    assert "a circle at S1" in choice.why and "update.mode" in choice.why


@pytest.mark.parametrize("verdict", [way for way in Way if way not in KNOWN])
@pytest.mark.parametrize(
    "site",
    [
        UpdateContext(),
        UpdateContext(jobs=1, uncovered=1),
        UpdateContext(jobs=1, subscribers=1),  # its user sent subscribe and ack
        UpdateContext(jobs=1, subscribers=1, urgent=True),
        UpdateContext(jobs=1, subscribers=1, base_changes=False, shelter_changes=True),
        UpdateContext(jobs=1, subscribers=1, obstacle="lmc 0", urgent=True),
    ],
)
def test_nobody_s_word_stands_for_the_proof(site: UpdateContext, verdict: Way) -> None:
    danger = Transition(verdict, "a credit loop in lane 0", ())
    for mode in ("fast", "five-phase"):
        choice = choose_update(UpdateConfig(mode=mode), danger, site, NOON)
        assert choice.how is UpdateMethod.REFUSE and not choice.whole
        assert "a credit loop in lane 0" in choice.why


def test_a_shelter_changes_only_while_nobody_is_in_it() -> None:
    site = UpdateContext(jobs=1, subscribers=2, base_changes=False, shelter_changes=True)
    assert how(SAFE, site, mode="five-phase") is UpdateMethod.DIRECT
    inside = UpdateContext(
        jobs=1, subscribers=2, on_shelter=1, base_changes=False, shelter_changes=True
    )
    assert how(SAFE, inside, mode="five-phase") is UpdateMethod.WAIT


def test_not_even_a_window_is_for_what_is_not_known() -> None:
    for site in (UpdateContext(jobs=1), UpdateContext()):
        keys: dict[str, object] = {"mode": "window", "windows": ["11:00-13:00"]}
        for way in set(Way) - {*KNOWN, Way.UNSAFE}:
            assert (
                how(Transition(way, "S1 has not answered", ()), site, **keys) is UpdateMethod.REFUSE
            )
        choice = choose_update(UpdateConfig.model_validate(keys), UNSAFE, site, NOON)
        assert choice.whole, "the administrator has said so"


@pytest.mark.parametrize(
    "line",
    ["deadline_seconds = 301", "lease_seconds = 601", 'unsubscribed = "accept"'],
)
def test_settings_that_would_hold_up_a_pass_or_the_proof(line: str) -> None:
    """systemd ends an agent whose pass takes 15 minutes."""
    with pytest.raises(ConfigError, match=line.split()[0]):
        parse_config(f"[update]\n{line}")


def test_window() -> None:
    keys: dict[str, object] = {"mode": "window", "windows": ["11:00-13:00"]}
    busy, late = UpdateContext(jobs=1), datetime(2026, 11, 21, 14, 0)
    assert how(UNSAFE, busy, **keys) is UpdateMethod.DIRECT
    assert how(STAGED, busy, **keys) is UpdateMethod.STAGED
    assert how(SAFE, busy, late, **keys) is UpdateMethod.WAIT
    assert how(UNSAFE, UpdateContext(), late, **keys) is UpdateMethod.DIRECT, "no job runs"
    assert how(SAFE, UpdateContext(jobs=1, urgent=True), late, **keys) is UpdateMethod.DIRECT
    assert how(UNSAFE, UpdateContext(jobs=1, urgent=True), late, **keys) is UpdateMethod.WAIT
    choice = choose_update(UpdateConfig.model_validate(keys), SAFE, busy, late)
    assert choice.why == "waiting until no multi-switch job runs or a window opens (11:00-13:00)"
    assert how(SAFE, busy, mode="window") is UpdateMethod.WAIT


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("02:00-04:00", ["21 02:00", "22 03:59"], ["21 01:59", "21 04:00"]),
        ("22:00-06:00", ["21 23:00", "22 05:59", "21 00:00"], ["21 06:00", "21 21:59"]),
        ("sat 22:00-06:00", ["21 22:00", "22 05:00"], ["21 05:00", "22 22:00", "20 23:00"]),
        ("sat,mon 10:00-24:00", ["21 23:59", "23 10:00"], ["22 12:00"]),
        ("fri-mon 00:00-24:00", ["20 12:00", "22 12:00", "23 12:00"], ["24 12:00", "26 12:00"]),
    ],
)
def test_windows(window: str, inside: list[str], outside: list[str]) -> None:
    for text in inside + outside:
        when = datetime.strptime("2026-11-" + text, "%Y-%m-%d %H:%M")
        assert Window.of(window).open_at(when) == (text in inside), text
