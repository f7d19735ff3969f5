"""A stock OpenSM on a simulated fabric, with or without our plugin.

with Ibsim(net) as fabric, OpenSM(fabric, host="n001", plugin=PLUGIN) as sm:
    sm.wait_up()
    PluginClient(sm.socket_path).load(generation)
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sar_agent.errors import SarError
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.process import Daemon, find_program, wait_for

LIBRARY = "libsarbridge.so"


class OpenSM:
    """One OpenSM process. `folder` holds its config, log, caches and dumps. `run_dir` holds the
    files that the agent uses: routes.sar, bridge.sock, in_force.sar. Both are removed at the
    end."""

    def __init__(
        self,
        fabric: Ibsim,
        *,
        host: str,
        plugin: Path | None = None,
        routing_engine: str = "sar,dfsssp,updn",
        plugin_options: str | None = None,
        more_plugin_options: str = "",
        options: Mapping[str, str] | None = None,
        priority: int = 0,
        log_flags: int = 0x43,
        run_dir: Path | None = None,
        preload: str = "",
        beside: Path | None = None,
    ) -> None:
        """`plugin` is the built library, or None for an OpenSM without it. `options` are lines of
        opensm.conf. `plugin_options` replaces `dir=RUN_DIR`, `more_plugin_options` is added to
        it. `preload` is a library (a sanitizer's) to load before umad2sim; `beside` a second
        plugin, libNAME.so. A second instance on another `host` with a lower `priority` is a
        standby."""
        self.fabric, self.host, self.priority, self.log_flags = fabric, host, priority, log_flags
        self._plugin, self._engine = plugin, routing_engine
        self._options, self._plugin_options = dict(options or {}), plugin_options
        self._more_plugin_options = more_plugin_options
        self._given_run_dir, self._preload, self._beside = run_dir, preload, beside
        self._folder: Path | None = None
        self._daemon: Daemon | None = None

    @property
    def folder(self) -> Path:
        if self._folder is None:
            raise SarError("this OpenSM was not started")
        return self._folder

    @property
    def run_dir(self) -> Path:
        return self._given_run_dir or self.folder / "run"

    @property
    def socket_path(self) -> Path:
        return self.run_dir / "bridge.sock"

    @property
    def routes_path(self) -> Path:
        return self.run_dir / "routes.sar"

    @property
    def next_path(self) -> Path:
        """The file that a `load` reads."""
        return self.run_dir / "routes.next"

    @property
    def log_path(self) -> Path:
        return self.folder / "opensm.log"

    @property
    def dump_dir(self) -> Path:
        """The folder of opensm-subnet.lst and, with log flag 0x40, of opensm.fdbs and others."""
        return self.folder / "dump"

    def lids(self) -> dict[int, range]:
        """Port GUID → its LIDs, as stored by OpenSM."""
        return read_lids(self.folder / "cache")

    @property
    def pid(self) -> int:
        if self._daemon is None:
            raise SarError("this OpenSM is not running")
        return self._daemon.pid

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def output(self) -> str:
        """The text on its stdout and stderr, which is not part of the log."""
        path = self.folder / "stdout"
        return path.read_text(errors="replace") if path.exists() else ""

    def alive(self) -> bool:
        return self._daemon is not None and self._daemon.alive()

    def prepare(self) -> OpenSM:
        """Create the folders, so that a routes file can be stored before the start."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="osm-", dir=self.fabric.scratch))
            for folder in ("cache", "dump", "lib"):
                (self._folder / folder).mkdir()
            self.run_dir.mkdir(exist_ok=True)
        return self

    def start(self) -> OpenSM:
        """Start OpenSM, or restart it in the same folder. Returns at once; `wait_up` waits."""
        program = find_program("opensm", "opensm")
        self.prepare()
        library = self.folder / "lib" / LIBRARY
        if self._plugin is not None:
            if not self._plugin.exists():
                raise SarError(f"{self._plugin} is not built: run make -C opensm_bridge")
            shutil.copyfile(self._plugin, library)
        if self._beside is not None:
            shutil.copyfile(self._beside, library.parent / self._beside.name)
        config = self.folder / "opensm.conf"
        config.write_text(self._config())
        env = self.fabric.env(self.host) | {
            "OSM_CACHE_DIR": str(self.folder / "cache"),
            "OSM_TMP_DIR": str(self.dump_dir),
            "LD_LIBRARY_PATH": str(library.parent),
        }
        env["LD_PRELOAD"] = f"{self._preload} {env['LD_PRELOAD']}".strip()
        # OpenSM empties its log by -e, but later: `wait_up` must not read the one of before.
        self.log_path.unlink(missing_ok=True)
        # -d 2: flush the log after each line.
        flags = ["-e", "-d", "2", "-f", str(self.log_path), "-F", str(config)]
        flags += ["-D", hex(self.log_flags)]
        self._daemon = Daemon(
            [program, *flags], log=self.folder / "stdout", env=env, cwd=self.folder
        )
        return self

    def _config(self) -> str:
        lines = {
            "sm_priority": str(self.priority),
            "routing_engine": self._engine,
            "qos": "TRUE",
            "max_op_vls": "5",
            "sminfo_polling_timeout": "500",
            "polling_retry_number": "2",
        }
        if self._plugin is not None:
            second = [] if self._beside is None else [self._beside.stem.removeprefix("lib")]
            lines["event_plugin_name"] = " ".join(["sarbridge", *second])
            lines["event_plugin_options"] = self._plugin_options or (
                f"dir={self.run_dir} {self._more_plugin_options}"
            )
        return "".join(f"{key} {value}\n" for key, value in {**lines, **self._options}.items())

    def wait_up(self, seconds: float = 30) -> OpenSM:
        """Wait for the subnet to be up."""
        return self.wait_log("SUBNET UP", seconds)

    def wait_log(self, text: str, seconds: float = 30, *, after: int = 0) -> OpenSM:
        """Wait for `text` in the log after its character `after`."""
        wait_for(
            lambda: text in self.log()[after:],
            seconds,
            f"OpenSM on {self.host} logging {text!r}",
            alive=self.alive,
            last_words=self.output,
        )
        return self

    def sweep(self) -> None:
        """Ask for a heavy sweep (SIGHUP), which writes OpenSM's dump files too."""
        os.kill(self.pid, signal.SIGHUP)

    def load_plugin(self, plugin: Path, routing_engine: str) -> None:
        """From the next start on."""
        self._plugin, self._engine = plugin, routing_engine

    def stop(self) -> int | None:
        """Stop OpenSM and keep its folder; returns the exit code."""
        code = None if self._daemon is None else self._daemon.stop()
        self._daemon = None
        return code

    def kill(self) -> None:
        """End OpenSM by SIGKILL, as in a crash, and disconnect it from ibsim."""
        if self._daemon is not None:
            pid = self._daemon.pid
            self._daemon.signal(signal.SIGKILL)
            self._daemon.wait()
            self._daemon = None
            self.fabric.disconnect(pid)

    def close(self) -> None:
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> OpenSM:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()


def read_lids(cache: Path) -> dict[int, range]:
    """Port GUID → its LIDs, from OpenSM's guid2lid in its cache folder."""
    lids = {}
    for line in (cache / "guid2lid").read_text().splitlines():
        if line.strip():
            guid, low, high = (int(word, 0) for word in line.split())
            lids[guid] = range(low, high + 1)
    return lids
