"""A simulated InfiniBand fabric (ibsim), and the diagnostic tools run against it.

with Ibsim(net_text) as fabric:
    print(fabric.run("ibnetdiscover", host="n001").stdout)
    fabric.unlink("leaf0", 5)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from sar_agent.errors import SarError, Unavailable
from sar_lab.live.process import Daemon, find_program, patience, wait_for, wait_until

_NODE = re.compile(r"^(Switch|Hca|Ca|Rt)\s*(\d+)", re.MULTILINE)
_UMAD2SIM = "umad2sim/libumad2sim.so"
TIMEOUTS = "SAR_UMAD_TIMEOUTS"
"""Names the library that gives programs under ibsim the kernel's time limits for MADs
(opensm_bridge/tests/umad_timeouts.c). Without it OpenSM waits forever for a lost answer."""
_LFT_CAP = 49152  # entries of a switch's table: all unicast LIDs
_PACKAGES = {
    "ibsim": "ibsim-utils",
    "ibdmchk": "ibutils",
}


def umad2sim() -> Path:
    """The library that connects a tool to ibsim instead of the kernel."""
    for folder in sorted(Path("/usr/lib").glob(f"*/{_UMAD2SIM}")):
        return folder
    raise SarError(
        "libumad2sim.so is not installed: run tests/install-debian-packages "
        "(Debian package libumad2sim0)"
    )


class Ibsim:
    """The simulator as a context manager; its folder `scratch` is removed at the end."""

    def __init__(self, net: str | Path) -> None:
        """`net` is the text or the path of an ibsim `.net` file."""
        self._net = net.read_text() if isinstance(net, Path) else net
        self._name = f"sar-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._daemon: Daemon | None = None
        self._scratch: Path | None = None

    @property
    def scratch(self) -> Path:
        if self._scratch is None:
            raise SarError("ibsim is not running")
        return self._scratch

    @property
    def pid(self) -> int:
        return self._running().pid

    def __enter__(self) -> Ibsim:
        program, _ = find_program("ibsim", "ibsim-utils"), umad2sim()
        self._scratch = Path(tempfile.mkdtemp(prefix="sar-ibsim-"))
        try:
            net = self._scratch / "fabric.net"
            net.write_text(self._net)
            self._daemon = Daemon(
                [program, "-s", *self._sizes(), str(net)],
                log=self._scratch / "ibsim.log",
                env={**os.environ, "IBSIM_SOCKNAME": self._name},
                cwd=self._scratch,
                stdin=subprocess.PIPE,
            )
            wait_for(
                lambda: "Network simulator ready" in self.log(),
                30,
                "ibsim reading the fabric",
                alive=self._daemon.alive,
            )
        except BaseException:
            shown = self.log()[-300:]
            self.close()
            if "fatal" in shown:
                raise SarError(f"ibsim cannot read the fabric: {shown.strip()}") from None
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._daemon is not None:
            self._daemon.stop(3)
            self._daemon = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def log(self) -> str:
        path = self.scratch / "ibsim.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _sizes(self) -> list[str]:
        """The options for the sizes of the tables that ibsim allocates at its start."""
        nodes = [(kind, int(ports)) for kind, ports in _NODE.findall(self._net)]
        switches = sum(kind == "Switch" for kind, _ in nodes)
        ports = sum(ports + 1 for _, ports in nodes)
        sizes = {"-N": len(nodes) + 8, "-S": switches + 8, "-P": ports + 64, "-L": _LFT_CAP}
        return [word for key, value in {**sizes, "-M": 1024}.items() for word in (key, str(value))]

    def _running(self) -> Daemon:
        if self._daemon is None or not self._daemon.alive():
            raise Unavailable("ibsim is not running")
        return self._daemon

    def env(self, host: str | None = None, *, sm: bool = False) -> dict[str, str]:
        """The environment that connects a program to this fabric, at port 1 of node `host`."""
        libraries = [os.environ.get(TIMEOUTS, ""), str(umad2sim())]
        env = {
            **os.environ,
            "LD_PRELOAD": " ".join(filter(None, libraries)),
            "IBSIM_SOCKNAME": self._name,
        }
        env["PATH"] = f"{env.get('PATH', '')}:/usr/sbin:/sbin"
        env.pop("SIM_HOST", None)
        if host is not None:
            env["SIM_HOST"] = host
        if sm:
            env["SIM_SET_ISSM"] = "1"
        return env

    def run(
        self, tool: str, *arguments: str, host: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a diagnostic tool (ibroute, saquery, smpquery, …) from `host`; the caller judges
        the exit code. A tool that crashes leaves folders behind, so each runs in its own."""
        timeout *= patience()
        program = find_program(tool, _PACKAGES.get(tool, "infiniband-diags"))
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            try:
                return subprocess.run(
                    [program, *arguments],
                    env=self.env(host),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise Unavailable(f"{tool} gave no answer within {timeout:g} s") from error

    def console(self, command: str) -> None:
        """Write a line to ibsim's console, such as `Dump` or `Clear "spine0"`."""
        daemon = self._running()
        daemon.stdin.write(command.encode() + b"\n")
        daemon.stdin.flush()

    def run_commands(self, commands: Sequence[str]) -> None:
        """Write lines to ibsim's console, and wait until ibsim has carried out all of them."""
        prompts = self.log().count("sim> ") + len(commands)
        for command in commands:
            self.console(command)
        done = wait_until(lambda: self.log().count("sim> ") >= prompts, 30, 0.01)
        if not done:
            raise Unavailable(f"ibsim did not carry out {len(commands)} commands in time")

    def disconnect(self, pid: int) -> None:
        """Disconnect the client of a killed process. ibsim has room for ten clients, and notices
        that one has ended only when it sends to it."""
        begin = len(self.log())
        self.run_commands(["Attached"])
        clients = re.compile(rf"Client (\d+): pid {pid} connected")
        if client := clients.search(self.log(), begin):
            # Done when this returns: otherwise it might end the next client of the same number.
            self.run_commands([f"X {client[1]}"])

    def unlink(self, node: str, port: int) -> None:
        """Pull the cable at a port. Both ends send a trap, so OpenSM sweeps."""
        self.console(f'Unlink "{node}"[{port}]')

    def relink(self, node: str, port: int | None = None) -> None:
        """Put back the cable that `unlink` pulled at `port`, or all pulled cables of a node."""
        self.console(f'ReLink "{node}"' + ("" if port is None else f"[{port}]"))

    def link(self, node: str, port: int, peer: str, peer_port: int) -> None:
        """Connect two free ports with a cable."""
        self.console(f'Link "{node}"[{port}] "{peer}"[{peer_port}]')

    def clear(self, node: str) -> None:
        """Unlink all ports of a node, as if it lost power."""
        self.console(f'Clear "{node}"')

    def drop(self, node: str, percent: int, attribute: int = 0) -> None:
        """Drop `percent` of the MADs to a node; attribute 25 is LinearForwardingTable, 0 means
        all."""
        self.console(f'Error "{node}" {percent} {attribute}')
