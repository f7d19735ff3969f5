"""A subnet manager from outside the tree: found by its entry point, and a whole pass on it.

The toy (tests/worlds/toy_subnet_manager.py) keeps tables in memory and has no generations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.build import build_agent, build_site
from sar_agent.agent.decide import Reason
from sar_agent.agent.explain import explain
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.agent.rollback import rollback
from sar_agent.agent.status import read_agent_status
from sar_agent.config.model import Config
from sar_agent.errors import InputError
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.subnet_manager import (
    load_subnet_manager,
)
from sar_agent.util.extensions import extension_names
from tests.worlds.extension import installed_package
from tests.worlds.fake_opensm import FakeSource, job

TOY = Path(__file__).parents[1] / "worlds/toy_subnet_manager.py"
JOBS = (job("1", "n001", "n005", "n009"), job("2", "n002", "n006"))


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    net = tmp_path / "fabric.net"
    write_ibsim_net(load_fabric("xgft:2;4,4;1,2"), net)
    sections = {
        "agent": {
            "mode": "install",
            "state_dir": str(tmp_path / "state"),
            "run_dir": str(tmp_path / "run"),
        },
        "slurm": {"topology_conf": ""},
        "fabric": {"file": str(net)},
        "opensm": {"method": "toy"},
    }
    points = "[sar_agent.subnet_managers]\ntoy = toy_sm:ToyManager\n"
    with installed_package(tmp_path, "toy_sm", TOY.read_text(), points):
        yield Config.model_validate(sections, strict=False)


class Toy:
    """An agent on the toy."""

    def __init__(self, config: Config) -> None:
        self.config, self.source = config, FakeSource(JOBS)
        self.manager: Any = load_subnet_manager(config)
        self.agent = self.restart()

    def restart(self) -> Agent:
        self.agent = build_agent(self.config, self.manager, self.source)
        return self.agent


def test_it_is_found_by_its_entry_point(config: Config) -> None:
    assert list(extension_names("sar_agent.subnet_managers")) == ["file", "plugin", "toy"]
    assert load_subnet_manager(config).name == "Toy SM"
    other = config.model_copy(update={"opensm": config.opensm.model_copy(update={"method": "ufm"})})
    with pytest.raises(InputError, match=r"no subnet manager is called 'ufm'.*file, plugin, toy"):
        load_subnet_manager(other)


def test_passes_plan_and_install_on_it(config: Config) -> None:
    toy = Toy(config)
    report = toy.agent.pass_once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FIRST), report.sentence
    assert toy.agent.pass_once().result is Result.NOTHING
    state = toy.agent.installed.store.load()
    assert state is not None and state.identity == toy.manager.status().identity
    toy.source.records = JOBS[:1]
    report = toy.agent.pass_once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.JOBS)
    planned = toy.agent.current.planned
    assert planned and np.array_equal(planned.routes.egress, toy.manager.tables.egress)
    assert toy.restart().pass_once().result is Result.NOTHING, "a restart knows the identity"
    assert toy.agent.metrics.registry.get_sample_value("sar_agent_sm_reachable") == 1


def test_commands_work_on_it(config: Config) -> None:
    toy = Toy(config)
    toy.agent.pass_once()
    toy.source.records = JOBS[:1]
    toy.agent.pass_once()
    status = read_agent_status(config, toy.manager)
    assert status.ours and "(Toy SM master" in status.words()
    site = build_site(config, toy.manager, toy.source)
    assert explain(config, "1", site).in_force is not None
    assert "generation 1 are in force again" in rollback(config, 1, None, site)
    assert toy.restart().pass_once().result is Result.NOTHING
