"""Settings of every live test (time limits of MADs as the kernel's), and daemons that the tests of
a file share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.ibsim import TIMEOUTS
from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.built import built


def pytest_configure() -> None:
    os.environ[TIMEOUTS] = str(built("opensm_bridge", "libumad_timeouts.so"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """`--dist loadgroup`: tests that share a daemon run in one process, others anywhere."""
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(fixture.scope == "module" for known in fixtures for fixture in known):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster("n[001-016]", leaf_size=4) as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """The cluster; without jobs after each test."""
    yield cluster
    cluster.run("scancel", "--user=root")
    assert wait_until(lambda: not cluster.squeue("-h"), 30)


@pytest.fixture(scope="module")
def munge() -> Iterator[Path]:
    """The socket of a munged."""
    with MungeDaemon() as munged:
        yield munged.socket
