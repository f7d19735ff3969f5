"""Programs under ibsim have the kernel's time limits for MADs: a lost request ends as timed out."""

from __future__ import annotations

import os
import signal

import pytest

from sar_agent.fabric.spec import load_fabric
from sar_lab.live.generated import ibsim_for
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_until

pytestmark = pytest.mark.live


def test_a_standby_takes_over_from_a_master_that_does_not_answer() -> None:
    with (
        ibsim_for(load_fabric("xgft:2;4,4;1,2")) as net,
        OpenSM(net, host="n001", priority=9, routing_engine="updn") as master,
    ):
        master.wait_up()
        with OpenSM(net, host="n002", priority=1, routing_engine="updn") as standby:
            standby.wait_log("Entering STANDBY state")
            os.kill(master.pid, signal.SIGSTOP)
            try:
                standby.wait_log("SUBNET UP", 60)
            finally:
                os.kill(master.pid, signal.SIGCONT)
            assert wait_until(lambda: "Entering STANDBY state" in standby.log(), 60)
