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
from pathlib import Path

from sar_agent.errors import SarError, Unavailable
from sar_lab.live.process import PATIENCE, Daemon, find_program, wait_for, wait_until

_NODE = re.compile(r"^(Switch|Hca|Ca|Rt)\s*(\d+)", re.MULTILINE)
_UMAD2SIM = "umad2sim/libumad2sim.so"
_LFT_CAP = 49152  # what a switch's table may hold: all unicast LIDs
_PACKAGES = {
    "ibsim": "ibsim-utils",
    "ibdmchk": "ibutils",
}


def umad2sim() -> Path:
    """The library that takes the kernel's place between a tool and ibsim."""
    for folder in sorted(Path("/usr/lib").glob(f"*/{_UMAD2SIM}")):
        return folder
    raise SarError(
        "libumad2sim.so is not installed: run deploy/install-debian-packages "
        "(Debian package libumad2sim0)"
    )


class Ibsim:
    """The simulator as a context manager; `scratch` is a folder of its own, gone afterwards."""

    def __init__(self, net: str | Path) -> None:
        """`net` is the text of an ibsim `.net` file, or the path of one."""
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
        """ibsim allocates tables of fixed sizes at its start."""
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
        """The environment in which a program talks to this fabric, from node `host`'s port 1."""
        env = {**os.environ, "LD_PRELOAD": str(umad2sim()), "IBSIM_SOCKNAME": self._name}
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
        the exit code. Tools leave folders behind when they crash, so each has one of its own."""
        timeout *= PATIENCE
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
        """A line on ibsim's console, such as `Dump` or `Clear "spine0"`."""
        daemon = self._running()
        daemon.stdin.write(command.encode() + b"\n")
        daemon.stdin.flush()

    def disconnect(self, pid: int) -> None:
        """Forget the client of a process that was killed: ibsim has room for ten, and notices that
        one is gone only when it has something for it."""
        begin = len(self.log())
        self.console("Attached")
        clients = re.compile(rf"Client (\d+): pid {pid} connected")
        wait_until(lambda: clients.search(self.log(), begin) is not None, 1, 0.01)
        if client := clients.search(self.log(), begin):
            prompts = self.log().count("sim> ")
            self.console(f"X {client[1]}")
            # Else it might disconnect who connects next, in the same place.
            wait_until(lambda: self.log().count("sim> ") > prompts, 5, 0.01)

    def unlink(self, node: str, port: int) -> None:
        """Pull the cable at a port; both ends raise a trap, so OpenSM sweeps."""
        self.console(f'Unlink "{node}"[{port}]')

    def relink(self, node: str, port: int | None = None) -> None:
        """Put back the cable that `unlink` pulled at `port`, or all of a node that were pulled."""
        self.console(f'ReLink "{node}"' + ("" if port is None else f"[{port}]"))

    def link(self, node: str, port: int, peer: str, peer_port: int) -> None:
        """A cable between two free ports."""
        self.console(f'Link "{node}"[{port}] "{peer}"[{peer_port}]')

    def clear(self, node: str) -> None:
        """Unlink all ports of a node: it loses power."""
        self.console(f'Clear "{node}"')

    def drop(self, node: str, percent: int, attribute: int = 0) -> None:
        """Lose that share of the MADs that come to a node; 25 is LinearForwardingTable, 0 all."""
        self.console(f'Error "{node}" {percent} {attribute}')
