"""Waiting for the state of a daemon, in the live tests and demos."""

from __future__ import annotations

import pytest

from sar_agent.errors import Unavailable
from sar_lab.live.process import wait_for


def test_a_state_that_held_for_a_moment_has_happened() -> None:
    """A daemon may go on to its next state before anybody looks a second time."""
    states = iter([False, True, False])
    wait_for(lambda: next(states), 1, "the state")


def test_a_state_that_holds_when_the_process_ends_has_happened() -> None:
    wait_for(lambda: True, 1, "the state", alive=lambda: False)


def test_a_process_that_ends_first_is_named_with_its_last_words() -> None:
    with pytest.raises(Unavailable, match="the state: the process has ended; no such option"):
        wait_for(
            lambda: False, 1, "the state", alive=lambda: False, last_words=lambda: "no such option"
        )


def test_a_state_that_never_comes_is_given_up() -> None:
    with pytest.raises(Unavailable, match="the state did not happen within"):
        wait_for(lambda: False, 0, "the state")
