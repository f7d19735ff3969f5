"""Jobs are found by each name that Slurm prints for them."""

from __future__ import annotations

import pytest

from sar_agent.errors import InputError
from sar_agent.jobs.find_job import find_job, require_job
from sar_agent.jobs.record import JobRecord

_JOBS = [
    JobRecord(job, ("n1", "n2"), "RUNNING", raw=raw)
    for job, raw in [
        ("101", ()), ("102_1", ("103",)), ("102_2", ("102",)), ("200", ("200", "201")),
        ("beta:300", ()), ("7_4", ()), ("7_9", ()),
    ]
]  # fmt: skip


@pytest.mark.parametrize(
    ("named", "job"),
    [
        ("101", "101"), ("101.0", "101"), ("101.batch", "101"), ("alpha:101", "101"),
        ("102_1", "102_1"), ("103", "102_1"), ("102", "102_2"), ("102_2.extern", "102_2"),
        ("200+1", "200"), ("201", "200"), ("200+0.0", "200"),
        ("beta:300", "beta:300"), ("300", "beta:300"),
        ("7_[4-5]", "7_4"),
    ],
)  # fmt: skip
def test_a_job_has_several_names(named: str, job: str) -> None:
    found = find_job(_JOBS, named)
    assert found is not None and found.id == job


def test_names_of_no_job_and_of_several() -> None:
    assert [find_job(_JOBS, named) for named in ("7", "10", "x", "", "102_3")] == [None] * 5
    with pytest.raises(InputError, match=r"no job 7 is running") as error:
        require_job(_JOBS, "7")
    assert "did you mean 7_4 or 7_9?" in str(error.value)
    with pytest.raises(InputError, match=r"7_\[4-9\] names 2 jobs"):
        find_job(_JOBS, "7_[4-9]")
