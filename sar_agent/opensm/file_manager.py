"""A stock OpenSM without our plugin, as the agent's subnet manager: its engine `file` installs what
we write into `lfts_file`, when a heavy sweep is requested.

OpenSM checks nothing, confirms nothing and forgets nothing: it loads the file again at each heavy
sweep, dead links included. So a plan is in force only when the tables that were read back equal it,
entry for entry; what cannot be done this way is in docs/file-method.md. Plans of one virtual lane
only.
"""

from __future__ import annotations

import time
from pathlib import Path

from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.guid_tables import DumpUnfinished
from sar_agent.formats.high_ports import MOST_SIGNED, REMEDY, WHY, require_high_ports
from sar_agent.install.changes import differences
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, NotYet, SmRefused, SmStatus, SubnetManager
from sar_agent.opensm.file_lfts import LftsFile, LftsSwap, plan_text, read_lfts_file
from sar_agent.opensm.file_read_back import ASK_AGAIN_SECONDS, TablesReader, TablesReading
from sar_agent.opensm.file_reload import SweepRequest
from sar_agent.opensm.plugin_install import OUR_ENGINE
from sar_agent.util.plural import plural
from sar_agent.util.stages import stage

ANOTHER_SWEEP_SECONDS = 10.0
"""Seconds to wait for a second dump: the first may be of a sweep that began before the request."""
IGNORED = (
    "OpenSM has not loaded it: it needs routing_engine file and this path as lfts_file in "
    "opensm.conf, and must be the master"
)


class FileManager(SubnetManager):
    """As configured."""

    name = "OpenSM"

    def __init__(self, config: Config) -> None:
        opensm = config.opensm
        self.path, self.deadline = Path(opensm.lfts_file), opensm.load_deadline_seconds
        self.request, self.reader = SweepRequest(opensm), TablesReader(config)
        code = opensm.head_of_queue_lifetime
        self.head_of_queue = -1.0 if code >= 20 else 4.096e-6 * 2**code
        """Seconds as in `SmStatus`, which OpenSM does not tell."""
        self.swap = LftsSwap(self.path)
        self._file: tuple[object, LftsFile | None] | None = None
        """The file with its version."""

    def status(self) -> SmStatus:
        """Raises `SarError` where OpenSM has ended, or nothing can be read back."""
        return self._status(self.request.process(), self.reader.latest())

    def fabric(self) -> Fabric:
        """Never: without the plugin, OpenSM tells nobody its fabric."""
        raise Unavailable(
            'OpenSM without the plugin reports no fabric; set opensm.fabric_source = ""'
        )

    def routes_in_force(self, fabric: Fabric, *, wait: bool = True) -> InForce:
        """As read back; `NotYet` where the dump is being written, or older than the fabric."""
        return self._in_force(fabric, self.reader.read())

    def install(self, plan: Plan, proved_from: str | None) -> InForce:
        """Write `lfts_file`, request a sweep, and read back until all entries are the plan's."""
        if (lanes := plan.routes.virtual_lanes) > 1:
            raise SmRefused(
                f'these routes need {lanes} virtual lanes, and opensm.method = "file" installs one '
                "only; use the plugin, lmc 0, or an engine that needs one lane (updn, ftree)"
            )
        self.request.process()
        self._ours()  # raises where the file is not ours
        before = self._in_force(plan.fabric, self.reader.read())
        if proved_from not in (None, before.digest):
            raise SmRefused("other tables are in force than the plan was proved from", changed=True)
        asked = self.reader.version()
        with stage("write"):
            self.swap.replace(plan_text(plan))
        try:
            with stage("load"):
                self.request.send()
        except SarError:
            self.swap.undo()
            raise
        with stage("read_back"):
            found, wrong = self._wait(plan, asked)
        if not wrong and found is not None:
            self.swap.confirm()
            return found
        if found is None or found.digest == before.digest:
            self.swap.undo()
            raise SmRefused(f"{self.path}: {IGNORED}; the routes in force stay")
        raise SmRefused(
            f"{plural(wrong, 'entry', 'entries')} of the tables in force differ from the plan, "
            f"and {self.path} holds "
            "the plan",
            pending=True,
        )

    def recover(self) -> str:
        """An install that was cut short is finished where its tables are in force, else undone."""
        if not self.swap.pending:
            return ""
        file = self._ours()
        reading = self.reader.read()
        if file and not file.tables.entries_missing_in(reading.tables):
            self.swap.confirm()
            return f"generation {file.generation} is in force and confirmed"
        self.swap.undo()
        return f"an install was cut short; {self.path} is again what it was before"

    def confirm_restart(self, generation: int, *, compare: bool) -> None:
        """`lfts_file` holds `generation`, and with `compare` the entries in force."""
        file = self._ours()
        if file is None or file.generation != generation:
            kept = file.generation if file else "nothing"
            raise SarError(f"generation {generation} is in force, {self.path} holds {kept}")
        if compare and (wrong := file.tables.entries_missing_in(self.reader.read().tables)):
            raise SarError(
                f"what is in force differs from {self.path} in {plural(wrong, 'entry', 'entries')}"
            )

    def _wait(self, plan: Plan, asked: tuple[int, ...]) -> tuple[InForce | None, int]:
        """(what was read last, how many of its entries differ from the plan); returns once none
        does, once two sweeps did not bring the plan, or at the deadline."""
        begin, found, wrong, sweeps = time.monotonic(), None, 0, 0
        end = begin + self.deadline
        while True:
            version = self.reader.version()
            if self.reader.asks_switches or version != asked:
                try:
                    found = self._in_force(plan.fabric, self.reader.read(self.deadline))
                except NotYet:
                    pass  # the deadline of this loop decides
                else:
                    if not (wrong := differences(plan.routes_file, found.file)):
                        return found, 0
                    if not self.reader.asks_switches:
                        asked, sweeps = version, sweeps + 1
                        took = time.monotonic() - begin
                        end = min(end, time.monotonic() + max(ANOTHER_SWEEP_SECONDS, 3 * took))
            if sweeps > 1 or time.monotonic() >= end:
                return found, wrong
            time.sleep(ASK_AGAIN_SECONDS)

    def _ours(self) -> LftsFile | None:
        """`lfts_file`, which we wrote; None where there is none. Raises `InputError`."""
        try:
            stat = self.path.stat()
            version: object = stat.st_ino, stat.st_size, stat.st_mtime_ns
        except OSError:
            version = None
        if self._file is None or version is None or self._file[0] != version:
            self._file = version, read_lfts_file(self.path)
        return self._file[1]

    def _in_force(self, fabric: Fabric, reading: TablesReading) -> InForce:
        status = self._status(self.request.process(), reading)
        engine = str(status.details["planned_by"]) if status.ours else "opensm"
        try:
            routes = reading.tables.on(fabric, engine)
        except DumpUnfinished as error:
            raise NotYet(f"{error}; the fabric and the tables are not of one time") from error
        require_high_ports(fabric, routes, self.reader.name)
        file = routes_to_file(fabric, routes, status.generation)
        return InForce(routes, None, routes.digest.hex(), file, status, confirmed=True)

    def _status(self, pid: int, reading: TablesReading) -> SmStatus:
        file, problem, wrong = None, "", 0
        try:
            file = self._ours()
        except InputError as error:
            problem = str(error)
        if file is not None:
            wrong = file.tables.entries_missing_in(reading.tables)
            if file.tables.highest_port > MOST_SIGNED >= reading.tables.highest_port:
                problem = f"{self.reader.name} has no port above {MOST_SIGNED}: {WHY}; {REMEDY}"
            elif wrong:
                problem = (
                    f"{plural(wrong, 'entry', 'entries')} of the tables in force differ from "
                    f"{self.path} (generation "
                    f"{file.generation}): a fallback engine has routed, or OpenSM ignores the file"
                )
        elif not problem:
            problem = f"{self.path} does not exist, so OpenSM uses its next routing engine"
        ours = file is not None and not wrong
        generation = file.generation if file else 0
        return SmStatus(
            engine=OUR_ENGINE if ours else "unknown",
            ours=ours,
            identity=file.identity if file and ours else "",
            generation=generation if ours else 0,
            highest_generation=generation,
            restart_generation=generation,
            install_pending=self.swap.pending,
            process=pid,
            last_error=problem,
            switches=len(reading.tables.nodes.switches),
            hca_ports=reading.tables.hca_ports,
            lmc=reading.tables.lmc,
            # The dump is written, and the command run, after changes of the fabric, too.
            sweeps=hash(reading.version),
            tables_version=None if self.reader.asks_switches else (pid, *reading.version),
            head_of_queue_seconds=self.head_of_queue,
            built_at=reading.written_at,
            dump="" if self.reader.asks_switches else self.reader.name,
            details={
                "method": "file",
                "lfts_file": str(self.path),
                "planned_by": file.engine if file else "",
                "generation_in_force": generation if ours else 0,
                "entries_that_differ": wrong,
                "last_error": problem,
                "process": pid,
                "read_back_at": reading.written_at,
            },
        )


file_manager = FileManager
"""The subnet manager `file`, by the name of its entry point."""
