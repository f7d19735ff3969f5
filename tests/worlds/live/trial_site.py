"""A simulated site for `trial`: ibsim, a stock OpenSM with our plugin or its engine `file`, and a
real Slurm with a reservation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sar_agent.config.toml_text import value_text
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.util.text_files import write_text
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.requirements import plugin
from sar_lab.live.slurm import SlurmCluster

FABRIC, LEAF = "xgft:2;4,4;1,3", 4
NODES = "n[001-002,005-006,009-010,013-014]"
"""Few, as all ranks run on this machine: four for each of the two jobs."""
RESERVATION = "rehearsal"


@dataclass(frozen=True)
class SimulatedSite:
    """A site that runs."""

    config: Path
    ibsim: Ibsim
    manager: OpenSM
    slurm: SlurmCluster


@contextmanager
def simulated_site(folder: Path, method: str) -> Iterator[SimulatedSite]:
    """`method` as in [opensm]. The environment of this process names its Slurm. Raises `SarError`
    where programs are missing."""
    fabric = xgft_fabric(FABRIC)
    with ExitStack() as stack:
        ibsim = stack.enter_context(ibsim_for(fabric))
        lfts, pid_file = folder / "lfts", folder / "opensm.pid"
        options = {"qos": "FALSE", "lmc": "0", "lfts_file": str(lfts)}
        manager = stack.enter_context(
            OpenSM(
                ibsim,
                host=fabric.terminal_host[0],
                plugin=plugin() if method == "plugin" else None,
                routing_engine="sar,updn" if method == "plugin" else "file,updn",
                options=None if method == "plugin" else options,
            )
        )
        manager.wait_up()
        write_text(pid_file, f"{manager.pid}\n")
        slurm = stack.enter_context(SlurmCluster(f"n[001-{fabric.terminals:03d}]", LEAF))
        os.environ["SLURM_CONF"] = str(slurm.conf)
        slurm.run(
            "scontrol", "create", "reservation", f"reservationname={RESERVATION}", "users=root",
            "starttime=now", "duration=600", f"nodes={NODES}",
        )  # fmt: skip
        opensm: dict[str, object] = {
            "method": method,
            "plugin_socket": str(manager.socket_path),
            "poll_seconds": 0.1,
        }
        if method == "file":
            dump = manager.dump_dir / "opensm-lfts.dump"
            opensm |= {"lfts_file": str(lfts), "pid_file": str(pid_file), "lfts_dump": str(dump)}
        env = {k: v for k, v in ibsim.env("n002").items() if os.environ.get(k) != v}
        sections: dict[str, dict[str, object]] = {
            "agent": {
                "mode": "install",
                "state_dir": str(folder / "state"),
                "run_dir": str(manager.run_dir),
                "metrics_address": "",
            },
            "slurm": {"topology_conf": str(slurm.topology_conf)},
            "opensm": opensm,
            "fabric": {"environment": env},
        }
        config = folder / "sar-agent.toml"
        lines = [
            line
            for name, keys in sections.items()
            for line in (f"[{name}]", *(f"{k} = {value_text(v)}" for k, v in keys.items()))
        ]
        write_text(config, "\n".join(lines) + "\n")
        yield SimulatedSite(config, ibsim, manager, slurm)
