"""The one bound on what clients may have."""

from __future__ import annotations

import threading

from sar_agent.util.quota import Bound, Quota


def test_parts_of_one_of_all_and_of_those_who_are_trusted() -> None:
    quota = Quota(10, 4, kept=3, trusted={0})
    assert [quota.try_add(1) for _ in range(5)] == [None] * 4 + [Bound.ONE]
    assert [quota.try_add(2) for _ in range(4)] == [None] * 3 + [Bound.ALL]
    assert [quota.try_add(0) for _ in range(4)] == [None] * 3 + [Bound.ALL]
    quota.give(1)
    assert quota.lacks(2) is None and quota.try_add(0) is None and quota.try_add(2) is Bound.ALL
    quota.clear()
    assert quota.try_add(1, 4) is None and quota.lacks(1, 4, instead=4) is None
    quota.give(1, 4)
    assert not quota.of, "nobody is remembered who has nothing"


def test_a_waiting_client_gets_the_next_free_place() -> None:
    quota = Quota(1, 1)
    assert quota.try_add("a") is None and quota.try_add("b", patience=0.01) is Bound.ALL
    threading.Timer(0.05, quota.give, ("a",)).start()
    assert quota.try_add("b", patience=60) is None
