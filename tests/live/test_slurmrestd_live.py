"""Debian's slurmrestd with JWT, beside a real slurmctld: its records are those of squeue."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.slurm.slurmrestd import SlurmrestdSource
from sar_agent.slurm.squeue import SqueueSource
from sar_lab.live.process import Daemon, free_port, require, wait_until
from sar_lab.live.slurm import SlurmCluster

pytestmark = pytest.mark.live


def openapi_plugins() -> list[str]:
    """The option for all plugins that do not need slurmdbd, which this cluster does not have."""
    files = Path("/usr/lib").glob("*/slurm-wlm/openapi_*.so")
    names = {file.stem.removeprefix("openapi_") for file in files}
    kept = sorted(n.replace("_", ".") for n in names if not n.startswith(("db", "slurmdbd")))
    return ["-s", ",".join(kept)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    require("slurmrestd", "slurmrestd")
    key = tmp_path_factory.mktemp("jwt") / "jwt.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    extra = f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={key}\n"
    with SlurmCluster("n[001-008]", leaf_size=4, shared=True, extra=extra) as made:
        yield made


class Rest:
    """slurmrestd as nobody, and the source that asks it."""

    def __init__(self, slurm: SlurmCluster, token: Path) -> None:
        self.slurm, self.port, self.token = slurm, free_port(1), token
        self.source = SlurmrestdSource(f"http://127.0.0.1:{self.port}", token, 20.0)
        self.start()

    def start(self) -> None:
        """Returns when it listens."""
        who = ["-u", "nobody", "-g", "nogroup"] if os.geteuid() == 0 else []
        command = ["slurmrestd", "-a", "rest_auth/jwt", *openapi_plugins(), *who]
        self.daemon = Daemon(
            [*command, f"127.0.0.1:{self.port}"],
            self.slurm.folder / "log" / "slurmrestd.out",
            self.slurm.env() | {"SLURM_JWT": "daemon"},
        )
        assert wait_until(self.answers, 30), self.daemon.tail()

    def answers(self) -> bool:
        self.daemon.check()
        try:
            self.source.poll()
        except Unavailable as error:
            return "does not answer (" not in str(error)
        return True

    def renew(self, seconds: int = 3600) -> None:
        self.token.write_text(self.slurm.run("scontrol", "token", f"lifespan={seconds}"))


@pytest.fixture
def rest(slurm, tmp_path, monkeypatch) -> Iterator[Rest]:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    token = tmp_path / "token"
    token.write_text(slurm.run("scontrol", "token", "lifespan=3600"))
    made = Rest(slurm, token)
    yield made
    made.daemon.stop(10)


def test_its_records_are_those_of_squeue(rest, slurm):
    wide = slurm.salloc("n[001-002,005]", "--comment=a|b sar:ring", "--time=10")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=0-1", "-N1", "--wrap", "sleep 600").strip()
    options = ("--exclusive", "--time=5", "--parsable", "--wrap", "true")
    later = slurm.run("sbatch", "-w", "n[002,006]", "-N2", *options).strip()
    slurm.run("sbatch", "--hold", "-N2", *options)
    wanted = {wide, het, f"{array}_0", f"{array}_1"}
    squeue = SqueueSource(deadline=30)
    assert wait_until(lambda: {job.id for job in squeue.poll().records} == wanted, 60)
    assert wait_until(lambda: later in {job.id for job in squeue.poll().planned}, 90)
    alike = lambda: set(rest.source.poll().records) == set(squeue.poll().records)  # noqa: E731
    assert wait_until(alike, 20), (rest.source.poll(), squeue.poll())
    old = rest.source.version == "v0.0.38"  # it does not say which nodes are planned
    told = lambda: {job.id: job.hosts for job in rest.source.poll().planned}.get(later)  # noqa: E731
    assert told() is None if old else wait_until(lambda: told() == ("n002", "n006"), 30)
    hosts = [f"n00{n}" for n in range(1, 9)]
    assert rest.source.allocated(hosts) == squeue.allocated(hosts)
    assert rest.source.version in ("v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41", "v0.0.42")


def test_a_token_that_expires_and_is_renewed_and_one_of_another_cluster(rest, slurm):
    job = slurm.salloc(2)
    rest.renew(1)

    def expired() -> bool:
        try:
            rest.source.poll()
        except Unavailable as error:
            return "the token expired on" in str(error)
        return False

    assert wait_until(expired, 20)
    rest.renew()
    assert [each.id for each in rest.source.poll().records] == [job]
    head, claims, _ = rest.token.read_text().strip().split(".")
    rest.token.write_text(f"{head}.{claims}.AAAA")
    with pytest.raises(Unavailable, match=r"refused|accepts nothing"):
        rest.source.poll()
    rest.renew()
    assert rest.source.poll().records


def test_slurmrestd_and_slurmctld_that_go_and_come_back(rest, slurm):
    job = slurm.salloc(2)
    rest.daemon.stop(10)
    with pytest.raises(Unavailable, match="slurmrestd does not answer"):
        rest.source.poll()
    rest.start()
    assert [each.id for each in rest.source.poll().records] == [job]
    slurm.stop_controller()
    try:
        with pytest.raises(Unavailable, match=r"slurmctld does not answer|no whole answer"):
            rest.source.poll()
    finally:
        slurm.start_controller()
    assert wait_until(rest.answers, 30)
    assert [each.id for each in rest.source.poll().records] == [job]
