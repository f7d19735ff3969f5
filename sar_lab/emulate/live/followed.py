"""The routes of an emulated fabric, kept as the switches of ibsim answer.

`dump_fts` of infiniband-diags asks every switch for its forwarding table by MADs, so neither the
agent nor OpenSM is believed. What differs is written to the namespaces; then all routes there are
read back and compared with the answers, entry by entry.

**Weak spot:** switches are asked one after the other, while OpenSM may write them, and routes are
written one after the other. Packets may meet a mixture of tables that the switches never had
together; of a transition that is direct every mixture was proved.
"""

from __future__ import annotations

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.lfts_dump import parse_tables
from sar_agent.routing import Routes
from sar_lab.emulate.tables import EmulatedTables
from sar_lab.live.ibsim import Ibsim


class FollowedTables:
    """The tables of the namespaces follow those of `ibsim`, asked from `host`."""

    def __init__(self, ibsim: Ibsim, host: str, tables: EmulatedTables) -> None:
        self._ibsim, self._host, self.tables = ibsim, host, tables
        self.answers = 0
        """How often all switches have answered."""
        self.compared = 0
        """Entries that were compared with an answer, in all."""
        self.routes: Routes | None = None
        """The last answer."""
        self.trouble = ""
        """Why the last look had no answer."""

    def look(self) -> int:
        """Asks all switches; returns how many entries were written. Where one does not answer,
        nothing changes. Raises `CheckFailed` where a route is then not as its switch answered."""
        try:
            routes = self._answer(self.tables.network.fabric)
        except SarError as error:
            self.trouble = str(error)
            return 0
        self.trouble = ""
        changed = self.tables.install(routes)
        self.tables.require_equal()
        self.routes = routes
        self.answers += 1
        self.compared += self.tables.entries.size
        return changed

    def _answer(self, fabric: Fabric) -> Routes:
        done = self._ibsim.run("dump_fts", host=self._host)
        if done.returncode or done.stderr:
            raise SarError(f"dump_fts: {' '.join((done.stderr or done.stdout).split())[:200]}")
        return parse_tables(done.stdout.encode(), "dump_fts", named=True).on(fabric)
