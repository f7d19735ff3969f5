"""A subnet manager in memory: it believes every plan and forgets all when the process ends."""

import hashlib

from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, SmRefused, SmStatus, SubnetManager
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine


class ToyManager(SubnetManager):
    name = "Toy SM"

    def __init__(self, config: Config) -> None:
        self.tables, self.ours, self.fabric_of_tables = None, False, None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.tables.egress.tobytes()).hexdigest()

    def status(self) -> SmStatus:
        if self.tables is None:
            return SmStatus(engine="minhop")
        identity = self.digest if self.ours else ""
        engine = "sar" if self.ours else "minhop"
        return SmStatus(engine, self.ours, identity, tables_version=(self.ours, self.digest))

    def fabric(self) -> Fabric:
        raise Unavailable("the toy discovers no fabric; set fabric.file")

    def routes_in_force(self, fabric: Fabric, *, wait: bool = True) -> InForce:
        if self.tables is None:
            self.tables = load_engine("minhop").route(fabric, JobMix.of([]), Options())
        file = routes_to_file(fabric, self.tables, 0)
        return InForce(self.tables, None, self.digest, file, self.status(), confirmed=True)

    def install(self, plan: Plan, proved_from: str | None) -> InForce:
        if proved_from not in (None, self.digest):
            raise SmRefused("other tables are in force than the plan was proved from", changed=True)
        self.tables, self.ours = plan.routes, True
        return self.routes_in_force(plan.fabric)

    def fall_back(self) -> None:
        """What a real manager may do at any time: route by itself."""
        self.tables, self.ours = None, False
