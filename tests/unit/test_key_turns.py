"""A user who has keys made and given back in turn is served ever less often; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.agent.outcome import Result
from sar_agent.services.keys import turns
from sar_agent.services.keys.turns import Turns
from tests.worlds.key_site import ALICE, BOB, ROOT, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    assert site.pass_().result is Result.INSTALLED
    return site


def key_and_done(site: Site, seconds: int) -> tuple[int, set[str]]:
    """Alice asks, and gives back, twice a second; the installs, and the states of her answers."""
    before, states = len(site.bridge.loads), set[str]()
    for n in range(2 * seconds):
        site.now += 0.5
        answer = site.ask(phase=f"p{n % 40}", traffic=("ring", "butterfly", "shift:1")[n % 3])
        states.add(answer["state"])
        site.say("key-done")
    return len(site.bridge.loads) - before, states


def test_key_and_key_done_in_turn_change_tables_ever_less_often(site: Site) -> None:
    """One user changed tables once a second, and another's job waited ten times as long."""
    installs, states = key_and_done(site, 25)
    assert turns.FREE_TURNS < installs <= turns.FREE_TURNS + 6
    assert states == {"in_force", "waiting"}
    later, states = key_and_done(site, 300)
    assert later <= 300 / turns.FORGET_SECONDS + 2
    assert states == {"in_force", "waiting", "none"}
    while key_and_done(site, 1)[0] == 0:
        pass
    told = site.ask(phase="again")
    assert told["offset"] == 0 and f"uid {ALICE} has had keys changed too often" in told["sentence"]

    assert site.ask(BOB, "b", job="2")["state"] == "in_force", "others are served at once"
    assert not site.agent.keys.waiting, "a request that is put off is no work"
    site.now += 2 * turns.FORGET_SECONDS
    assert site.ask(phase="again")["state"] == "in_force"
    site.now += 20 * turns.FORGET_SECONDS
    installs, states = key_and_done(site, turns.FREE_TURNS // 2)
    assert installs == turns.FREE_TURNS and states == {"in_force"}, "all is forgotten"


def test_many_phases_asked_for_at_once_are_one_turn(site: Site) -> None:
    for round_ in range(turns.FREE_TURNS):
        site.now += 1
        names = [f"r{round_}p{n}" for n in range(4)]
        for name in names:
            assert site.say("key", phase=name, traffic="ring")["state"] == "waiting"
        site.agent.serve_keys()
        answers = [site.say("key", phase=name, traffic="ring") for name in names]
        assert {answer["state"] for answer in answers} == {"in_force"}
        site.say("key-done")


def test_what_a_turn_had_no_time_for_is_no_further_turn_and_root_has_no_pause() -> None:
    now = 0.0
    taken = Turns(frozenset({ROOT}), lambda: now)
    for uid, came, each in ((ALICE, 0.0, 1.0), (ROOT, None, 1.0), (BOB, None, 1.0)):
        for _ in range(20):
            now += each
            taken.take(uid, now if came is None else came)
    assert [taken.left(uid) > 0 for uid in (ALICE, ROOT, BOB)] == [False, False, True]


def test_users_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_UIDS", 3)
    taken = Turns(frozenset(), lambda: 0.0)
    for uid in range(10):
        taken.take(uid, 0.0)
    assert list(taken._taken) == [7, 8, 9]
