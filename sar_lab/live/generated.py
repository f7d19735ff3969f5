"""ibsim for a generated fabric."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_lab.live.ibsim import Ibsim


def ibsim_for(fabric: Fabric) -> Ibsim:
    """An ibsim of this fabric that is not started yet."""
    with tempfile.TemporaryDirectory(prefix="sar-net-") as folder:
        net = Path(folder) / "fabric.net"
        write_ibsim_net(fabric, net)
        return Ibsim(net)
