"""The decision, whatever the queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.agent.decide import ObservedState, decide
from sar_agent.agent.state import State
from sar_agent.jobs.filter import host_sets
from sar_agent.jobs.record import JobRecord

HOSTS = st.sets(st.sampled_from([f"n{i}" for i in range(8)]), min_size=2, max_size=4)
RECORDS = st.lists(
    st.builds(
        lambda id, hosts, start: JobRecord(str(id), tuple(sorted(hosts)), "RUNNING", start=start),
        st.integers(1, 10**6),
        HOSTS,
        st.none() | st.floats(0, 2000),
    ),
    max_size=8,
).map(tuple)


def made_for(records: tuple[JobRecord, ...]) -> State:
    digest, jobs = b"fabric".hex(), host_sets(records)
    return State(
        generation=1, engine="sar", jobs=jobs, fabric_digest=digest, installed_at=0, identity=""
    )


def seen(records: tuple[JobRecord, ...], min_age: float = 0.0) -> ObservedState:
    return ObservedState(records, b"fabric", "sar", now=1000.0, min_age=min_age)


@given(RECORDS, RECORDS)
def test_without_age_it_is_about_host_sets_alone(before, after) -> None:
    made = made_for(before)
    changed = decide(made, seen(after)).reason is not None
    assert changed == (host_sets(before) != host_sets(after))


@given(RECORDS, RECORDS, st.floats(0, 500))
def test_waiting_for_age_only_ever_delays(before, after, min_age) -> None:
    made = made_for(before)
    if decide(made, seen(after, min_age)).reason is not None:
        assert decide(made, seen(after)).reason is not None
    ended = host_sets(before) - host_sets(after)
    if ended:
        assert decide(made, seen(after, min_age)).reason is not None, "ends are never delayed"
