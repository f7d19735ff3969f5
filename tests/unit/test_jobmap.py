"""The job-to-terminal map in the original's form."""

from __future__ import annotations

import pytest

from sar_agent.errors import InputError
from sar_agent.jobs.jobmap import format_jobmap, parse_jobmap, write_jobmap
from sar_agent.jobs.record import JobRecord

JOBS = (
    JobRecord("17", ("a-b-1", "x1y02"), "RUNNING"),
    JobRecord("6_1", ("n1", "n2"), "RUNNING"),
    JobRecord("6_2", ("n1", "n3"), "RUNNING"),
)


def test_the_form():
    assert format_jobmap(JOBS).splitlines() == [
        "# host jobid, written by sar-agent",
        "a-b-1 17",
        "x1y02 17",
        "# 18 is 6_1",
        "n1 18",
        "n2 18",
        "# 19 is 6_2",
        "n1 19",
        "n3 19",
    ]


@pytest.mark.parametrize("bad", ["n1", "n1 2 3", "n1 x", "n[1-2] 3", "n1 3_", "n1|2 3", "12 n1"])
def test_a_broken_line_is_named(bad):
    with pytest.raises(
        InputError, match=r"^map:2: .*(one host and one job id|write the host first)"
    ) as caught:
        parse_jobmap(f"n1 1\n{bad}\n", "map")
    assert caught.value.line == 2


def test_a_missing_directory_is_said():
    with pytest.raises(InputError, match="No such file or directory"):
        write_jobmap("/no/such/map", JOBS)


def test_only_the_agents_group_may_read_it(tmp_path):
    """Under Slurm's PrivateData=jobs no user may know where another's jobs run."""
    tmp_path.chmod(0o755)
    (tmp_path / "map").write_text("of an older release")
    (tmp_path / "map").chmod(0o644)
    write_jobmap(tmp_path / "map", JOBS)
    assert (tmp_path / "map").stat().st_mode & 0o777 == 0o640
