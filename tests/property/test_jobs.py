"""Laws of the jobs room, searched for counterexamples."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.jobs.filter import host_sets, job_change, multi_switch
from sar_agent.jobs.jobmap import format_jobmap, parse_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.slurm.squeue import parse_poll
from sar_agent.slurm.squeue_text import parse_squeue_pipe
from sar_agent.util.hostlist import expand

words = st.from_regex(r"[a-z][a-z_.\-]{0,4}", fullmatch=True)


near_powers = st.sampled_from([0, 5, 95, 990, 9970]).flatmap(lambda at: st.integers(at, at + 20))
ranges = st.tuples(near_powers, st.integers(1, 30), st.integers(1, 5), st.integers(1, 5))


def spell(given_ranges):
    """The text of `[…]` ("" if there are no ranges) and the numbers it stands for, by Slurm's
    rule: all numbers of a range are padded to the width of its first.
    """
    texts, meant = [], []
    for first, count, width, width_of_last in given_ranges:
        low = str(first).zfill(width)
        texts.append(low if count == 1 else f"{low}-{first + count - 1:0{width_of_last}d}")
        meant += [str(number).zfill(len(low)) for number in range(first, first + count)]
    return (f"[{','.join(texts)}]", meant) if texts else ("", [""])


pieces = st.tuples(words, st.lists(ranges, max_size=2).map(spell))


@st.composite
def host_lists(draw):
    """(text, the set of names): several prefixes, up to two brackets in each, dashes."""
    texts, names = [], set()
    for parts in draw(st.lists(st.lists(pieces, min_size=1, max_size=2), min_size=1, max_size=3)):
        tail = draw(st.sampled_from(["", "-ib", "x"]))
        texts.append("".join(word + text for word, (text, _) in parts) + tail)
        choices = [[word + number for number in meant] for word, (_, meant) in parts]
        names |= {"".join(one) + tail for one in itertools.product(*choices)}
    return ",".join(texts), names


@given(host_lists())
def test_expand_agrees_with_an_oracle(given_list):
    text, names = given_list
    hosts = expand(text)
    assert set(hosts) == names
    assert len(hosts) == len(names)


ids = st.one_of(
    st.integers(1, 10**6).map(str), st.builds("{}_{}".format, st.integers(1, 99), st.integers(0, 9))
)
hosts = st.lists(st.integers(1, 12).map("n{}".format), min_size=1, max_size=6, unique=True)
records = st.lists(
    st.builds(
        JobRecord,
        id=ids,
        hosts=hosts.map(tuple),
        state=st.sampled_from(["RUNNING", "SUSPENDED"]),
        user=words,
        partition=words,
        start=st.none() | st.integers(1, 10**10).map(float),
        traffic=st.none() | words,
        uid=st.none(),
        raw=st.just(()),
    ),
    unique_by=lambda record: record.id,
    max_size=8,
)


@given(records, st.randoms(use_true_random=False))
def test_the_change_test_ignores_ids_and_order(jobs, random):
    new = [
        job._replace(id=str(place), hosts=tuple(random.sample(job.hosts, len(job.hosts))))
        for place, job in enumerate(jobs)
    ]
    random.shuffle(new)
    assert not job_change(host_sets(jobs), new)


@given(records, st.integers(1, 6))
def test_the_filter_against_a_plain_definition(jobs, size):
    leaf_of = {f"n{number}": {number // size} for number in range(1, 11)}  # n11, n12: unknown
    result = multi_switch(jobs, leaf_of.get)
    expected = [
        job.id for job in jobs if len({leaf for h in job.hosts for leaf in leaf_of.get(h, ())}) > 1
    ]
    assert [job.id for job in result.jobs] == expected
    assert result.unknown_hosts == {h for job in jobs for h in job.hosts} - set(leaf_of)


@given(records)
def test_a_job_map_reads_back(jobs):
    read = parse_jobmap(format_jobmap(jobs))
    assert [(job.id, job.hosts) for job in read] == [(job.id, job.hosts) for job in jobs]


def printed(job: JobRecord, comment: str) -> str:
    start = "N/A" if job.start is None else f"{job.start:.0f}"
    fields = job.id, job.state, ",".join(job.hosts), job.partition, job.user, "(null)", "0", start
    return "|".join((*fields, comment))


def same(jobs, read):
    assert [job._replace(hosts=tuple(sorted(job.hosts))) for job in jobs] == [
        job._replace(hosts=tuple(sorted(job.hosts))) for job in read
    ]


@given(records)
def test_pipe_text_reads_back(jobs):
    lines = [printed(job, f"sar:{job.traffic}" if job.traffic else "(null)") for job in jobs]
    same(jobs, parse_squeue_pipe("\n".join(lines)))


def without_traffic(jobs):
    return [job._replace(traffic=None, uid=None, raw=()) for job in jobs]


@given(records, st.lists(st.text(max_size=40), min_size=8, max_size=8))
def test_no_comment_disturbs_a_poll(jobs, comments):
    text = "".join(
        f"m4rk|{printed(job, comment)}|1000|7|\n"
        for job, comment in zip(jobs, comments, strict=False)
    )
    if text.count("m4rk|") == len(jobs):
        poll = parse_poll(text, "m4rk")
        assert poll.skipped == 0
        same(without_traffic(jobs), without_traffic(poll.records))
