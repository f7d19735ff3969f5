"""A source of jobs from a package outside the tree is named in the settings like squeue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_agent.config.model import ConfigError, parse_config
from sar_agent.errors import InputError
from sar_agent.jobs.source import job_source
from tests.worlds.extension import installed_package

FLUX = """
    from sar_agent.jobs.record import JobRecord
    from sar_agent.jobs.source import Poll

    class Flux:
        def __init__(self, settings):
            self.deadline = settings.deadline_seconds

        def poll(self):
            return Poll((JobRecord("f1", ("n1", "n2"), "RUN"),))
"""
SETTINGS = '[slurm]\nsource = "flux"\ndeadline_seconds = 3.0\ntopology_conf = ""\n'


@contextmanager
def source_installed(folder: Path, source: str = FLUX) -> Iterator[None]:
    points = "[sar_agent.job_sources]\nflux = toy_source:Flux\n"
    with installed_package(folder, "toy_source", source, points):
        yield


def test_an_unknown_name_is_refused_with_all_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(SETTINGS)
    assert caught.value.problems == [
        "slurm.source = 'flux': no such job source; there are pyslurm, squeue"
    ]
    with source_installed(tmp_path), pytest.raises(ConfigError, match="flux, pyslurm, squeue"):
        parse_config('[slurm]\nsource = "pbs"\n')


def test_a_package_that_cannot_be_imported_is_one_sentence(tmp_path: Path) -> None:
    with source_installed(tmp_path, "import no_such_module"):
        config = parse_config(SETTINGS).slurm
        with pytest.raises(InputError, match=r"job source 'flux' of toy-toy_source 0\.1 cannot be"):
            job_source(config)
