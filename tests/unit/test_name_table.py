"""Names × commands: each name that a command, page or file of ours, Slurm or OpenSM prints is taken
by each command, option and setting that takes such a name.

`NAMES` has what each kind of thing is called, `TAKERS` what takes this kind. Names that commands
print are collected from their output (`printed`). `test_every_option_is_in_the_table` reads the
options from the programs, so that a new one is in the table, too, or has a reason here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from sar_agent import cli
from sar_agent.config.model import parse_config
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper, Kind
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.find_job import require_job
from sar_agent.reports.places import find_places
from sar_agent.slurm.job_files import read_jobs_file
from sar_lab import cli as lab_cli
from tests.worlds.command_line import sar_agent, sar_lab
from tests.worlds.fabric_texts import ibnetdiscover_text

DESCRIBED = {
    "S1-0": "MF0;SLG02-04:MQM8700/U1", "S1-1": "MF0;SLG02-05:MQM8700/U1", "S1-2": "leaf 3 # a",
    "S1-3": "twin", "S2-0": "MF0;core:MCS8500/L05/U2", "S2-1": "twin",
}  # fmt: skip
QUEUE = (
    "CLUSTER: alpha\n"
    "101|RUNNING|n[001,005]|p|u|a|2|2026-01-01T00:00:00|\n"
    "102_1|RUNNING|n[002,006]|p|u|a|2|2026-01-01T00:00:00|\n"
    "200+0|RUNNING|n003|p|u|a|1|2026-01-01T00:00:00|\n"
    "200+1|RUNNING|n007|p|u|a|1|2026-01-01T00:00:00|\n"
    "300|RUNNING|n[009,013]|p|u|a|2|2026-01-01T00:00:00|\n"
    "400|PENDING||p|u|a|2|N/A|\n"
    "CLUSTER: beta\n"
    "300|RUNNING|n[010,014]|p|u|a|2|2026-01-01T00:00:00|\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fabric with managed switches, a director's unit and twins, in ibnetdiscover's format, with
    two HCAs a host; and a queue with all forms of jobs."""
    folder = tmp_path_factory.mktemp("names")
    text = ibnetdiscover_text(load_fabric("xgft:2;4,4;1,2"))
    for name, described in DESCRIBED.items():
        text = text.replace(f'"{name}"', f'"{described}"')
    text = text.replace(" HCA-1", " mlx5_0")
    slow = re.sub(r'("n008 mlx5_0" lid \d+) 4xEDR', r"\1 1xEDR", text)
    assert slow != text
    (folder / "fabric").write_text(slow)
    (folder / "queue").write_text(QUEUE)
    return folder


@cache
def fabric_of(folder: Path) -> Fabric:
    return load_fabric(str(folder / "fabric"))


def guid(fabric: Fabric, described: str) -> int:
    return int(fabric.switch_guid[fabric.switch_name.index(described)])


SWITCHES: dict[str, Callable[[int], str]] = {
    "its description": lambda g: "MF0;core:MCS8500/L05/U2",
    "in quotes, as reports": lambda g: '"MF0;core:MCS8500/L05/U2"',
    "in quotes, with its GUID": lambda g: f'"MF0;core:MCS8500/L05/U2" (0x{g:016x})',
    "as the live page": lambda g: "core/L05/U2",
    "short": lambda g: "core",
    "in another case": lambda g: "CORE/l05/u2",
    "in our topology.conf": lambda g: "MF0_core_MCS8500_L05_U2",
    "ibnetdiscover's id": lambda g: f"S-{g:016x}",
    "that in quotes": lambda g: f'"S-{g:016x}"',
    "its GUID": lambda g: f"0x{g:016x}",
    "its GUID, short": lambda g: f"0x{g:x}",
    "its GUID, bare": lambda g: f"{g:016x}",
}
HOSTS = {
    "short": "n005", "long": "n005.cluster.site", "in capitals": "N005",
    "of its interface": "n005-ib0", "a list of Slurm": "n[005]", "with a comma": "n005,n005",
}  # fmt: skip
HCAS = {
    "its description": "n005 mlx5_0", "in quotes": '"n005 mlx5_0"',
    "with its port": '"n005 mlx5_0"[1]', "as messages": '"n005 mlx5_0" (n005)',
    "a port of its host": "n005:1", "the same as a report": "n005[1]",
}  # fmt: skip
HCA_PATTERNS = (
    "mlx5_0",
    "mlx5_[0-11]",
    "mlx5_0/1",
    "mlx5_*",
    "mlx5_[0]",
    "mlx5_1,mlx5_0",
    "*",
)
JOBS = {
    "101": "101", "101.0": "101", "101.batch": "101", "101.extern": "101", "alpha:101": "101",
    "102_1": "102_1", "102_[1]": "102_1", "102_[1-3]": "102_1", "102_[0-9%2]": "102_1",
    "102_1.0": "102_1", "200": "200", "200+0": "200", "200+1": "200", "200+1.0": "200",
    "alpha:300": "alpha:300", "beta:300": "beta:300", "beta:300.0": "beta:300",
}  # fmt: skip

PLACE_TAKERS: dict[str, tuple[str, ...]] = {
    "link LINK": ("link",),
    "what-if --down": ("what-if", "--down"),
    "cables --ignore": ("cables", "--ignore"),
}


def taken(folder: Path, *words: str, queue: bool = True) -> None:
    """Runs a command of the table; fails where it refuses."""
    jobs = ("--jobs", folder / "queue") if queue else ()
    done = sar_agent(*words, "--fabric", folder / "fabric", *jobs, "--engine", "minhop")
    assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("how", SWITCHES)
@pytest.mark.parametrize("taker", [*PLACE_TAKERS, "what-if --add", "hours --down", "cables.ignore"])
def test_switches(folder: Path, how: str, taker: str) -> None:
    fabric = fabric_of(folder)
    s = fabric.switch_name.index("MF0;core:MCS8500/L05/U2")
    name = SWITCHES[how](int(fabric.switch_guid[s]))
    assert find_places(fabric, [name]).switches == (s,)
    port = int(fabric.channel_port[fabric.channel_offset[s]])
    for port_name in (f"{name}[{port}]", f"{name}:{port}"):
        assert find_places(fabric, [port_name]).channels == (fabric.channel_offset[s],)
    take(folder, taker, name)


def take(folder: Path, taker: str, name: str) -> None:
    """Gives a name of a place to one of the table's takers."""
    if taker == "what-if --add":
        taken(folder, "what-if", "--add", name)
    elif taker == "hours --down":
        history = folder / "history.csv"
        rows = [f'{j},2026-01-0{j}T01:00,2026-01-0{j}T05:00,"n[001-008]"' for j in range(1, 8)]
        history.write_text("\n".join(["job,start,end,nodelist", *rows]) + "\n")
        done = sar_lab(
            "hours", "--fabric", folder / "fabric", "--history", history, "--down", name,
            "--engine", "minhop",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    elif taker == "cables.ignore":
        file = folder / "agent.toml"
        file.write_text(f"[cables]\nignore = [{json.dumps(name)}]\n")
        done = sar_agent("cables", "--fabric", folder / "fabric", "--config", file)
        assert done.returncode == 0 and "cables.ignore" not in done.stderr, done.stderr
    else:
        taken(folder, *PLACE_TAKERS[taker], name)


@pytest.mark.parametrize("how", [*HOSTS, *HCAS])
@pytest.mark.parametrize("taker", [*PLACE_TAKERS, "hours --down", "cables.ignore"])
def test_hosts_and_hcas(folder: Path, how: str, taker: str) -> None:
    name = (HOSTS | HCAS)[how]
    fabric = fabric_of(folder)
    assert find_places(fabric, [name]).terminals == fabric.hosts["n005"]
    take(folder, taker, name)


@pytest.mark.parametrize("how", HOSTS)
def test_hosts_of_settings_and_of_jobs(folder: Path, how: str) -> None:
    name, where = HOSTS[how], str(folder / "fabric")
    if how != "of its interface":  # a setting's pattern is of the fabric's side
        done = sar_agent("cables", "--fabric", where, "--storage-hosts", name)
        assert done.returncode == 0, done.stderr
        for key in ("storage_hosts", "other_hosts"):
            mapper = parse_config(f"[fabric]\n{key} = [{json.dumps(name)}]").fabric.mapper
            assert mapper("n005 mlx5_0").kind != Kind.COMPUTE
            assert mapper("n006 mlx5_0").kind == Kind.COMPUTE
    queue = folder / "one"
    queue.write_text(f"7|RUNNING|{name},n001|p|u|a|2|2026-01-01T00:00:00|\n")
    done = sar_agent("link", "--job", "7", "--line", "--fabric", where, "--jobs", queue)
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    conf = folder / "topology.conf"
    conf.write_text(sar_agent("topology", "generate", "--fabric", where).stdout)
    done = sar_agent(
        "topology", "check", "--fabric", where, "--topology-conf", conf, "--elsewhere", name
    )
    assert "no such node" not in done.stderr and done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize("name", HCA_PATTERNS)
def test_hcas_and_rails(folder: Path, name: str) -> None:
    taken(folder, "cables", "--hca", name)
    assert HostMapper(job_hcas=(name,)).used_by_jobs("mlx5_0", 1)


@pytest.mark.parametrize("name", JOBS)
def test_jobs(folder: Path, name: str) -> None:
    assert require_job(read_jobs_file(folder / "queue"), name).id == JOBS[name]
    where = ("--fabric", folder / "fabric", "--jobs", folder / "queue")
    done = sar_agent("link", "--job", name, "--line", *where)
    assert done.returncode == 0 and JOBS[name] in done.stdout, done.stderr
    done = sar_agent("rank-order", name, *where)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("400", "job 400 is pending, not running"),
        ("300", "name one of them: alpha:300, beta:300"),
        ("102", "did you mean 102_1?"),
        ("103", "no job 103 is running"),
    ],
)
def test_jobs_that_do_not_run(folder: Path, name: str, said: str) -> None:
    where = ("--fabric", folder / "fabric", "--jobs", folder / "queue")
    for words in (("link", "--job", name), ("rank-order", name)):
        done = sar_agent(*words, *where)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def printed(folder: Path) -> Iterator[tuple[str, str]]:
    """Names of places in what commands print of this fabric: (command, name)."""
    where = ("--fabric", folder / "fabric")
    both = (*where, "--jobs", folder / "queue")
    texts = {
        "link": sar_agent("link", "core", *both, "--all").stdout,
        "link of a host": sar_agent("link", "n005", *both).stdout,
        "cables": sar_agent("cables", *both, "--all").stdout,
        "what-if": sar_agent("what-if", *both).stdout,
        "what-if --down": sar_agent("what-if", "--down", "core", *both).stdout,
        "topology generate": sar_agent("topology", "generate", *where).stdout,
        "rank-order": sar_agent("rank-order", "101", *both, "--json").stdout,
        "the dump": (folder / "fabric").read_text(),
    }
    for command, text in texts.items():
        names = re.findall(r'"[^"\n]+"(?: \(0x[0-9a-f]+\))?(?:\[\d+\])?', text)
        if command == "link":
            heads = (line.partition(": ")[0].strip() for line in text.splitlines())
            names += [head for head in heads if '" – "' in head or '" -> "' in head]
        if command == "rank-order":
            answer = json.loads(text)["hosts"]
            names = [each[key] for each in answer for key in ("host", "switch")]
        if command == "topology generate":
            names += re.findall(r"SwitchName=(\S+) Nodes", text) + re.findall(r"Nodes=(\S+)", text)
        assert names, command
        for name in dict.fromkeys(names):
            yield command, name


def test_what_commands_print_is_found(folder: Path) -> None:
    fabric, gaps, tried = fabric_of(folder), list[tuple[str, str, str]](), 0
    for command, name in printed(folder):
        tried += 1
        try:
            find_places(fabric, [name])
        except InputError as error:
            if "switches are called" not in str(error):  # a twin: the remedy has GUIDs
                gaps.append((command, name, str(error)))
    assert tried > 80 and not gaps, gaps


NAMELESS = {
    "partition": "Slurm's partition; `place` lists those that there are",
    "reservation": "Slurm's reservation, which Slurm looks up",
    "host_pattern": "an expression, not a name",
    "slurm_names": "pairs of names; test_host_spellings has them",
}
"""Options whose texts are names of none of the table's kinds."""
IN_TABLE = {
    "named", "down", "add", "ignore", "job", "job_hcas", "storage_hosts", "elsewhere",
}  # fmt: skip


def options(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(command, parameter) of each option and argument that takes text."""
    for name, sub in getattr(command, "commands", {}).items():
        if hasattr(sub, "commands"):
            yield from options(sub, (*path, name))
        else:
            yield from ((" ".join((*path, name)), p.name) for p in sub.params)


def test_every_option_is_in_the_table() -> None:
    words = re.compile(r"PLACE|SWITCH|LINK|GLOB|HOSTS|^JOB$")
    found = set()
    for app in (cli.app, lab_cli.app):
        command = typer.main.get_command(app)
        for _, parameter in options(command):
            found.add(parameter)
    assert found >= IN_TABLE
    for app in (cli.app, lab_cli.app):
        stack = [typer.main.get_command(app)]
        while stack:
            command = stack.pop()
            stack += getattr(command, "commands", {}).values()
            for p in command.params:
                if words.search(str(p.metavar or "")) or p.name in ("job", "host", "switch"):
                    assert p.name in IN_TABLE | NAMELESS.keys(), (command.name, p.name)
