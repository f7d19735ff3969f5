"""The fabric as OpenSM's plugin tells it: no ibnetdiscover, no umad.

While nothing changes it is the same object, and asking costs what OpenSM's copy costs.
"""

from __future__ import annotations

from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import OpensmFabric, read_opensm_fabric
from sar_agent.opensm.plugin_client import PluginClient


class DiscoveredFabric:
    """Remembers the last fabric read."""

    def __init__(self, bridge: PluginClient, mapper: HostMapper) -> None:
        self.bridge, self.mapper = bridge, mapper
        self._last: OpensmFabric | None = None

    def read(self) -> Fabric:
        """What OpenSM knows now. Raises `SarError` where the plugin is away or refuses, where it
        is of a release that does not know the request, and where its file is damaged."""
        try:
            told = self.bridge.fabric()
        except SarError as error:
            if "unknown request" not in str(error):
                raise
            raise Unavailable(
                f"{self.bridge.socket_path}: OpenSM's plugin is of an older release and does not "
                "tell the fabric; install both from one release, or set opensm.fabric_source = "
                '"ibnetdiscover"'
            ) from error
        if self._last is None or self._last.digest != told.digest:
            self._last = read_opensm_fabric(told.path, self.mapper)
        return self._last.fabric
