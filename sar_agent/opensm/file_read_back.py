"""What switches have, told by OpenSM's dump file or by a command that asks them."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.formats.guid_tables import DumpUnfinished, GuidTables
from sar_agent.formats.lfts_dump import parse_tables
from sar_agent.install.subnet_manager import NotYet
from sar_agent.util.programs import run_program
from sar_agent.util.text_files import disk_errors

LARGEST_DUMP = 2**31
"""Bytes of a dump; 20 million entries are 1.4 GB."""
UNFINISHED_DUMP_SECONDS = 5.0
"""Seconds to wait for a dump that is being written."""
ASK_AGAIN_SECONDS = 0.1


@dataclass(frozen=True)
class TablesReading:
    """Tables, and what named them when they were read."""

    tables: GuidTables
    version: tuple[int, ...]
    """Of the dump file: changes when OpenSM wrote it again, once a heavy sweep. Of the command: the
    number of the reading."""
    written_at: float
    """Unix seconds."""


class TablesReader:
    """Reads by `read_back_command` where there is one, else from the file `lfts_dump`."""

    def __init__(self, config: Config) -> None:
        opensm = config.opensm
        self.dump, self.command = Path(opensm.lfts_dump), opensm.read_back_command
        self.environment = os.environ | config.fabric.environment
        self.deadline = opensm.load_deadline_seconds
        self.fresh_for = config.agent.interval_seconds
        """Seconds for which `latest` trusts what the command printed."""
        self._last: TablesReading | None = None
        self._read_at = 0.0
        self._readings = 0

    @property
    def asks_switches(self) -> bool:
        """Whether a command asks the switches; else OpenSM's dump is believed."""
        return bool(self.command)

    @property
    def name(self) -> str:
        """Of the command or the dump, for messages."""
        return self.command[0] if self.command else str(self.dump)

    def version(self) -> tuple[int, ...]:
        """Of the dump file, without reading it; of the command, of the last reading. Raises
        `Unavailable` where there is no dump file."""
        if self.asks_switches:
            return (self._readings,)
        try:
            stat = self.dump.stat()
        except OSError as error:
            raise Unavailable(
                f"{self.dump}: {error.strerror}; OpenSM writes this file after each heavy sweep if "
                "its log_flags have 0x40 (such as 0x43)"
            ) from error
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def latest(self) -> TablesReading:
        """The last reading while it is fresh, else a new one. Raises as `read`."""
        last = self._last
        if last is not None and (
            time.monotonic() - self._read_at < self.fresh_for
            if self.asks_switches
            else last.version == self.version()
        ):
            return last
        return self.read()

    def read(self, patience: float = UNFINISHED_DUMP_SECONDS) -> TablesReading:
        """The tables now. A dump that is being written is waited for. Raises `NotYet` where it is
        not whole within `patience` seconds, else `SarError`."""
        until = time.monotonic() + patience
        while True:
            version = self.version()
            if self._last and not self.asks_switches and self._last.version == version:
                return self._last
            try:
                tables = self._tables()
            except DumpUnfinished as error:
                if time.monotonic() >= until:
                    raise NotYet(str(error)) from error
                time.sleep(ASK_AGAIN_SECONDS)
                continue
            if self.asks_switches:
                self._readings += 1
                version, written = (self._readings,), time.time()
            elif version != self.version():
                continue  # written again meanwhile
            else:
                written = version[2] / 1e9
            self._read_at = time.monotonic()
            self._last = TablesReading(tables, version, written)
            return self._last

    def _tables(self) -> GuidTables:
        if self.asks_switches:
            # Under a simulator the tools leave files where they run.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                text = run_program(
                    self.command,
                    deadline=self.deadline,
                    most=LARGEST_DUMP,
                    remedy="install infiniband-diags, or set opensm.read_back_command",
                    environment=self.environment,
                    folder=Path(folder),
                )
            return parse_tables(text.encode(), self.command[0])
        with disk_errors("cannot be read", self.dump):
            data = self.dump.read_bytes()
        return parse_tables(data, self.dump)
