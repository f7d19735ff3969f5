"""The fabric as OpenSM's plugin reports it: needs no ibnetdiscover and no umad device.

While nothing changes, each reading returns the same object and costs only OpenSM's copy.
"""

from __future__ import annotations

from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import OpensmFabric, read_opensm_fabric
from sar_agent.opensm.plugin_client import PluginClient


class DiscoveredFabric:
    """Reads the fabric, and remembers the last one."""

    def __init__(self, client: PluginClient, mapper: HostMapper) -> None:
        self.client, self.mapper = client, mapper
        self._last: OpensmFabric | None = None

    def read(self) -> Fabric:
        """The subnet as OpenSM knows it now. Raises `SarError` where the plugin does not answer or
        refuses, where its release does not know the request, and where its file is damaged."""
        answer = self.client.fabric()
        if self._last is None or self._last.digest != answer.digest:
            self._last = read_opensm_fabric(answer.path, self.mapper)
        return self._last.fabric
