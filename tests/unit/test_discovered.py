"""Where the agent takes the fabric from: OpenSM's plugin in install mode, ibnetdiscover in observe
mode, unless the configuration says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.build import build_site
from sar_agent.agent.observe_site import SiteObserver
from sar_agent.config.model import Config, parse_config
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.opensm.plugin_client import FabricAnswer
from sar_agent.opensm.plugin_manager import PluginManager
from tests.worlds.fabric_texts import SMALL
from tests.worlds.fake_opensm import FakeSource
from tests.worlds.opensm_files import image_of_text


class Plugin:
    """Answers `fabric`; with `refusal` it says no. `socket_path` is nobody's."""

    def __init__(self, folder: Path, refusal: str = "") -> None:
        self.path, self.refusal, self.asked = folder / "fabric.sar", refusal, 0
        self.socket_path = folder / "bridge.sock"
        self.digest = "0000000000000007"
        self.path.write_bytes(image_of_text(SMALL))

    def fabric(self) -> FabricAnswer:
        self.asked += 1
        if self.refusal:
            raise SarError(self.refusal)
        return FabricAnswer(path=self.path, digest=self.digest)


def discovered(plugin: Any) -> PluginManager:
    return PluginManager(plugin, Path("routes.sar"), HostMapper())


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        ("", False),
        ('[agent]\nmode = "install"', True),
        ('[agent]\nmode = "install"\n[opensm]\nfabric_source = "ibnetdiscover"', False),
        ('[opensm]\nfabric_source = "plugin"', True),
        ('[agent]\nmode = "install"\n[fabric]\nfile = "f.net"', False),
        ('[opensm]\nfabric_source = "plugin"\n[fabric]\nfile = "f.net"', False),
    ],
)
def test_the_source_of_the_fabric_follows_from_the_configuration(text: str, plugin: bool) -> None:
    assert parse_config(text).fabric_from_plugin is plugin


def test_a_file_that_was_replaced_before_it_was_read_is_read_again(tmp_path: Path) -> None:
    """Another client asked in between: what was read is of another digest than was answered."""
    plugin = Plugin(tmp_path)
    source = discovered(plugin)
    plugin.digest = "0000000000000006"
    first = source.fabric()
    assert source.fabric() is not first


def test_what_the_plugin_refuses_is_said(tmp_path: Path) -> None:
    with pytest.raises(SarError, match="ask the master"):
        discovered(Plugin(tmp_path, "x: this OpenSM is not the master; ask the master")).fabric()


def observer(folder: Path, plugin: Any, **opensm: str) -> SiteObserver:
    config = Config.model_validate_json(
        Config.model_validate(
            {
                "agent": {"mode": "install", "state_dir": folder, "run_dir": folder},
                "slurm": {"topology_conf": ""},
                "fabric": {"command": ["false"]},
                "opensm": {"plugin_socket": folder / "bridge.sock", **opensm},
            }
        ).model_dump_json()
    )
    manager: Any = PluginManager(plugin, folder / "routes.sar")
    return build_site(config, manager, FakeSource()).observer


def test_where_the_plugin_refuses_the_last_fabric_stays(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    eyes = observer(tmp_path, plugin)
    first = eyes.observe().fabric
    plugin.refusal = "x: OpenSM's sweep is under way; ask again"
    eyes.fabric.problem = "look again"
    assert eyes.observe().fabric is first
    assert "sweep is under way" in eyes.fabric.problem
    plugin.refusal = ""
    assert eyes.observe().fabric is first and not eyes.fabric.problem


def test_without_a_plugin_ibnetdiscover_only_where_it_was_asked_for(tmp_path: Path) -> None:
    away = Plugin(tmp_path, "x: OpenSM's plugin does not answer")
    with pytest.raises(Unavailable, match="the fabric is not known: x: OpenSM's plugin does not"):
        observer(tmp_path, away).observe()
    assert away.asked == 1
    with pytest.raises(Unavailable, match="the fabric is not known: false failed"):
        observer(tmp_path, away, fabric_source="ibnetdiscover").observe()
    assert away.asked == 1
