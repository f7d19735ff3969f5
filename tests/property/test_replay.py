"""Jobs at each sample of a replay: the sweep against asking the history at each moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_lab.history import HistoryBuilder, place_history
from sar_lab.replay.samples import samples_of
from tests.examples import examples

FABRIC = load_fabric("xgft:2;3,3;1,2")

times = st.integers(0, 40).map(float)
lengths = times | st.just(float("inf"))
jobs = st.lists(
    st.tuples(times, lengths, st.sets(st.integers(1, 9), min_size=1, max_size=5)),
    min_size=1,
    max_size=12,
)


@examples(100)
@given(jobs, st.sampled_from([None, 1.0, 3.0, 7.5]), st.none() | times, st.none() | times)
def test_states_are_what_runs(rows, every, begin, until):
    builder = HistoryBuilder("made")
    for i, (start, length, hosts) in enumerate(rows):
        builder.add(str(i), start, start + length, [f"n{h:03d}" for h in hosts])
    try:
        history = builder.build()
        samples = samples_of(FABRIC, history, every, begin, until)
    except InputError:
        return
    placed = place_history(history, FABRIC)
    for at, state in zip(samples.at, samples.state, strict=True):
        assert samples.mix(state) == placed.mix_at(at)
    steps = np.diff(samples.state)
    assert samples.state[0] == 0 and set(steps.tolist()) <= {0, 1}
    assert samples.state[-1] == samples.states - 1
    for state in range(1, samples.states):
        assert samples.mix(state) != samples.mix(state - 1)
    first, last = history.span
    first = first if begin is None else begin
    assert samples.at[0] == first and (np.diff(samples.at) > 0).all()
    if every is None:
        # Nothing changes between two samples that follow each other.
        ends = np.append(samples.at[1:], last if until is None else until)
        for at, end in zip(samples.at, ends, strict=True):
            assert placed.mix_at((at + end) / 2) == placed.mix_at(at)
