"""The job-to-terminal map, beside the routes file."""

from __future__ import annotations

from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.jobs.jobmap import write_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.util.owned_files import PUBLIC_FOLDER, make_folder
from sar_agent.util.problem_log import ProblemLog


class JobMap:
    """Written in both modes: a site with the original patch reads it, nobody else does."""

    def __init__(self, config: Config, say: ProblemLog) -> None:
        self.path, self.say = config.agent.run_dir / "job-to-terminal.map", say
        self._written: tuple[JobRecord, ...] | None = None

    def write(self, records: tuple[JobRecord, ...]) -> None:
        """Where the jobs are others, or the file is gone; a full disk is no reason to fail."""
        if records == self._written and self.path.exists():
            return
        try:
            make_folder(self.path.parent, PUBLIC_FOLDER)
            write_jobmap(self.path, records)
        except (SarError, OSError) as error:
            self.say.problem("map", f"{error}; the old job-to-terminal map stays")
        else:
            self._written = records
            self.say.problem("map", "", "the job-to-terminal map can be written again")
