"""How a plan is to come into force, by mode."""

from __future__ import annotations

from datetime import datetime

import pytest

from sar_agent.agent.how import How, Site, how_to_install
from sar_agent.check.transition import Transition, Way
from sar_agent.config import ConfigError, parse_config
from sar_agent.config_update import UpdateConfig, Window

NOON = datetime(2026, 11, 21, 12, 0)  # a Saturday
SAFE, UNSAFE = Transition(Way.DIRECT, "", ()), Transition(Way.UNSAFE, "a circle at S1", ())
STAGED = Transition(Way.STAGED, "a circle at S1", ())
UNPROVED = Transition(Way.UNPROVED, "a circle in force", ())


def how(transition: Transition | None, site: Site, now: datetime = NOON, **keys: object) -> How:
    return how_to_install(UpdateConfig.model_validate(keys), transition, site, now).how


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (None, How.DIRECT),
        (SAFE, How.DIRECT),
        (UNPROVED, How.DIRECT),
        (STAGED, How.STAGED),
        (UNSAFE, How.REFUSE),
    ],
)
def test_fast_wants_a_proof(transition: Transition | None, expected: How) -> None:
    assert how(transition, Site(jobs=2)) is expected
    choice = how_to_install(UpdateConfig(), UNSAFE, Site(jobs=2), NOON)
    assert "a circle at S1" in choice.why and "update.mode" in choice.why


def test_a_cap_on_what_changes_under_jobs() -> None:
    site = Site(jobs=1, entries=11)
    assert how(SAFE, site, max_changed_entries=11) is How.DIRECT
    assert how(SAFE, site, max_changed_entries=10) is How.REFUSE
    assert how(SAFE, Site(entries=11), max_changed_entries=10) is How.DIRECT, "no job runs"
    five = Site(jobs=1, subscribers=1, entries=11)
    assert how(SAFE, five, mode="five-phase", max_changed_entries=10) is How.FIVE_PHASE


def test_five_phase_moves_subscribers_whatever_is_proved() -> None:
    site = Site(jobs=1, subscribers=1)
    for transition in (SAFE, STAGED, UNSAFE, UNPROVED):
        assert how(transition, site, mode="five-phase") is How.FIVE_PHASE
    assert how(SAFE, site, mode="five-phase", direct_when_safe=True) is How.DIRECT
    assert how(STAGED, site, mode="five-phase", direct_when_safe=True) is How.STAGED
    assert how(UNSAFE, site, mode="five-phase", direct_when_safe=True) is How.FIVE_PHASE


def test_five_phase_for_jobs_that_do_not_subscribe() -> None:
    assert how(SAFE, Site(jobs=1, uncovered=1), mode="five-phase") is How.DIRECT
    for subscribers in (0, 3):
        site = Site(jobs=4, uncovered=1, subscribers=subscribers)
        assert how(UNSAFE, site, mode="five-phase") is How.REFUSE
        accepted = how(UNSAFE, site, mode="five-phase", unsubscribed="accept")
        assert accepted is (How.FIVE_PHASE if subscribers else How.DIRECT)
    assert how(UNSAFE, Site(), mode="five-phase") is How.DIRECT, "there is nobody"


def test_five_phase_where_it_cannot_be() -> None:
    site = Site(jobs=1, subscribers=1, obstacle="lmc 0")
    choice = how_to_install(UpdateConfig(mode="five-phase"), SAFE, site, NOON)
    assert choice.how is How.REFUSE and "lmc 0" in choice.why
    urgent = Site(jobs=1, subscribers=1, obstacle="lmc 0", urgent=True)
    assert how(SAFE, urgent, mode="five-phase") is How.DIRECT
    assert how(UNSAFE, urgent, mode="five-phase") is How.REFUSE


def test_a_shelter_changes_only_while_nobody_is_in_it() -> None:
    site = Site(jobs=1, subscribers=2, base_changes=False, shelter_changes=True)
    assert how(UNSAFE, site, mode="five-phase") is How.DIRECT
    inside = Site(jobs=1, subscribers=2, on_shelter=1, base_changes=False, shelter_changes=True)
    assert how(SAFE, inside, mode="five-phase") is How.WAIT


def test_who_has_subscribed_must_be_known() -> None:
    assert how(SAFE, Site(known_in=3), mode="five-phase") is How.WAIT
    assert how(SAFE, Site(known_in=3, urgent=True), mode="five-phase") is How.DIRECT
    assert how(SAFE, Site(known_in=3)) is How.DIRECT


def test_window() -> None:
    keys: dict[str, object] = {"mode": "window", "windows": ["11:00-13:00"]}
    busy, late = Site(jobs=1), datetime(2026, 11, 21, 14, 0)
    assert how(UNSAFE, busy, **keys) is How.DIRECT
    assert how(STAGED, busy, **keys) is How.STAGED
    assert how(SAFE, busy, late, **keys) is How.WAIT
    assert how(UNSAFE, Site(), late, **keys) is How.DIRECT, "no job runs"
    assert how(SAFE, Site(jobs=1, urgent=True), late, **keys) is How.DIRECT
    assert how(UNSAFE, Site(jobs=1, urgent=True), late, **keys) is How.WAIT
    choice = how_to_install(UpdateConfig.model_validate(keys), SAFE, busy, late)
    assert choice.why == "waiting until no multi-switch job runs or a window opens (11:00-13:00)"
    assert how(SAFE, busy, mode="window") is How.WAIT


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


@pytest.mark.parametrize(
    "window",
    ["", "2:00-4:00", "02:00", "25:00-26:00", "02:60-03:00", "02:00-02:00", "so 1:00-2:00"],
)
def test_no_windows(window: str) -> None:
    with pytest.raises(ConfigError, match=r"update\.windows"):
        parse_config(f'[update]\nwindows = ["{window}"]')
