"""What a job sends is one answer: every command that prints a job's load prints the same one.

A new measure of jobs is one more entry of `MEASURES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs.reference_tools.json_objects import json_objects
from sar_agent.agent.build import build_agent
from sar_agent.agent.loop import Agent
from sar_agent.config.model import parse_config
from sar_agent.demand.collectives import COLLECTIVES
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.services.live_page.web_app import WebApp
from tests.worlds.command_line import lab_said, said, sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live_page import ask

Values = dict[str, float]
"""By job."""
JOBS = {"1": "n[0-4]", "2": "n[5-6,9-10]", "3": "n[7-8,11]"}
FREE = ("n12", "n13", "n14", "n15")


def rails(ports: int, *, planes: bool = False, missing: int = -1) -> Fabric:
    """16 hosts in 4 pods with a leaf switch for each of their ports. All leaf switches are at the
    same spines, or (`planes`) those of a rail at its own, and one cable joins the two planes.
    `missing`: a host without its first port."""
    builder = FabricBuilder("rails")
    for s in range(4 * ports):
        builder.add_switch(0x5000 + s, f"leaf{s}", 32)
    spines = [builder.add_switch(0x6000 + s, f"spine{s}", 32) for s in range(4)]
    for h in range(16):
        for k in range(ports):
            guid = 0xA000 + 16 * h + k
            if (h, k) != (missing, 0):
                builder.add_terminal(
                    guid, f"n{h} mlx5_{k}", f"n{h}", h // 4 * ports + k, 1 + h % 4, node_guid=guid
                )
    for s in range(4 * ports):
        for k in range(2):
            builder.add_link(s, 20 + k, spines[s % ports * 2 + k if planes else k], 1 + s)
    builder.add_link(spines[0], 30, spines[2], 30)
    builder.add_link(spines[1], 30, spines[3], 30)
    return builder.build()


def tree() -> Fabric:
    fabric = xgft_fabric("xgft:2;4,4;1,2")
    hosts = tuple(f"n{t}" for t in range(fabric.terminals))
    return replace(
        fabric, terminal_host=hosts, terminal_description=tuple(f"{h} HCA-1" for h in hosts)
    )


FABRICS: dict[str, tuple[str, int]] = {
    "rails": (ibnetdiscover_text(rails(4)), 4),
    "rails, a port is missing": (ibnetdiscover_text(rails(4, missing=5)), 4),
    "tree": (ibnetdiscover_text(tree()), 1),
    "two planes": (ibnetdiscover_text(rails(2, planes=True)), 2),
    "LMC 1": (ibnetdiscover_text(tree()).replace(' lmc 0 "', ' lmc 1 "'), 1),
}
"""A fabric, and the parts of each job that spans switches."""


@dataclass
class Site:
    """The files of a site, and what was asked of them."""

    folder: Path

    @property
    def dumps(self) -> tuple[str | Path, ...]:
        return "--fabric", self.folder / "fabric", "--jobs", self.folder / "jobs"

    @property
    def both(self) -> tuple[str | Path, ...]:
        return *self.dumps, "--routes", self.folder / "m/lfts.dump"

    def say(self, command: str, *more: str | Path) -> dict[str, Any]:
        return dict(said(command, *self.both, *more, "--json"))

    @cached_property
    def agent(self) -> Agent:
        """In observe mode, after two passes, ten minutes apart."""
        agent = build_agent(parse_config(self.config.read_text()))
        agent.pass_once()
        agent.observers["job_days"]._at -= 600
        agent.pass_once()
        return agent

    @cached_property
    def page(self) -> dict[str, Any]:
        answer = ask(WebApp(self.agent.observers["page"].pages, "loopback"), "/api/state.json")
        return dict(json.loads(answer[2]))

    @property
    def text(self) -> str:
        return (self.folder / "fabric").read_text()

    @property
    def config(self) -> Path:
        return self.folder / "agent.toml"


@pytest.fixture(scope="module", params=FABRICS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    (folder / "fabric").write_text(FABRICS[request.param][0])
    (folder / "jobs").write_text("".join(
        f"{job}|RUNNING|{nodes}|batch|root||1|2026-01-01T00:00:00|\n" for job, nodes in JOBS.items()
    ))  # fmt: skip
    (folder / "nodes").write_text("".join(f"{host}|idle|batch\n" for host in FREE))
    squeue = fake_squeue(folder, [{"%i": job, "%N": nodes} for job, nodes in JOBS.items()])
    site = Site(folder)
    done = sar_agent(
        "route", *site.dumps, "--engine", "minhop", "--out", folder / "m", "--export", "lfts"
    )
    assert done.returncode == 0, done.stderr
    site.config.write_text(
        f'[agent]\nstate_dir = "{folder}/state"\nrun_dir = "{folder}/run"\nmetrics_address = ""\n'
        f'[slurm]\nsqueue = ["{squeue}"]\ntopology_conf = ""\n'
        f'[fabric]\nfile = "{folder}/fabric"\n[opensm]\nlfts_dump = "{folder}/m/lfts.dump"\n'
    )
    return site


def loads(rows: list[dict[str, Any]]) -> Values:
    """Of `measure`'s jobs."""
    return {row["job"]: 1 / row["throughput"] for row in rows}


def phases(rows: list[dict[str, Any]]) -> Values:
    return {row["job"]: row["phase_contention"] for row in rows}


def contended(rows: list[dict[str, Any]], collective: str) -> Values:
    return {row["job"]: row["contention"][collective] for row in rows}


def contended_by_explain(site: Site, collective: str) -> Values:
    found = {}
    for job in JOBS:
        told = dict(said("explain", job, "--config", site.config, "--json"))
        if told["in_force"]:
            found[job] = told["in_force"]["contention"][collective]
    return found


def explained(site: Site, what: str) -> Values:
    found = {}
    for job in JOBS:
        told = dict(said("explain", job, "--config", site.config, "--json"))
        if told["in_force"]:
            found[job] = max(1.0, told["in_force"][what])
    return found


def linked(site: Site) -> Values:
    """Of the fullest link of each job."""
    found = {}
    for job in JOBS:
        if links := site.say("link", "--job", job)["links"]:
            ways = [way for link in links for way in link["directions"]]
            found[job] = max(1.0, max(
                way["load"] for way in ways if job in {user["job"] for user in way["jobs"]}
            ))  # fmt: skip
    return found


def pulled(site: Site, what: str) -> Values:
    """Before a spine dies: of the jobs whose measures change then."""
    found: Values = {}
    for spine in re.findall(r'^Switch.*# "((?:spine|S2-)[0-9])"', site.text, re.MULTILINE):
        jobs = site.say("what-if", "--down", spine)["jobs"]
        found |= {row["job"]: row[what][0] for row in jobs}
    return found


def paged(site: Site, what: str) -> Values:
    return {row["job"]: max(1.0, row[what]) for row in site.page["jobs"]}


def kept(site: Site, column: int) -> Values:
    """Of the history of jobs."""
    sums = {id: row.mean("in_force") for id, row in site.agent.observers["job_days"]._rows.items()}
    return {id: means[column] for id, means in sums.items() if means}


def simulated(site: Site) -> Values:
    answer = lab_said("simulate-time", *site.dumps, "--routes", site.folder / "m", "--json")
    (result,) = answer["results"]  # type: ignore[misc]
    return {row["job"]: row["predicted"] for row in result["jobs_detail"]}


def assessed(site: Site) -> dict[str, Any]:
    out = site.folder / "page"
    return dict(site.say("assess", "--no-simulate", "--engine", "minhop", "--out", out)["before"])


MEASURES: dict[str, dict[str, Callable[[Site], Values]]] = {
    "largest load": {
        "measure": lambda site: loads(site.say("measure")["jobs_detail"]),
        "assess": lambda site: loads(assessed(site)["jobs_detail"]),
        "explain": lambda site: explained(site, "load"),
        "link": linked,
        "what-if": lambda site: pulled(site, "at_once"),
        "/api/state.json": lambda site: paged(site, "predicted"),
        "job days": lambda site: kept(site, 0),
        "simulate-time": simulated,
    },
    "one message at a time": {
        "measure": lambda site: phases(site.say("measure")["jobs_detail"]),
        "assess": lambda site: phases(assessed(site)["jobs_detail"]),
        "explain": lambda site: explained(site, "phase_contention"),
        "what-if": lambda site: pulled(site, "one_at_a_time"),
        "/api/state.json": lambda site: paged(site, "phase_contention"),
        "job days": lambda site: kept(site, 1),
    },
}
MEASURES |= {
    f"contention of {word}": {
        "measure": lambda site, word=word: contended(site.say("measure")["jobs_detail"], word),
        "assess": lambda site, word=word: contended(assessed(site)["jobs_detail"], word),
        "explain": lambda site, word=word: contended_by_explain(site, word),
        "/api/state.json": lambda site, word=word: contended(site.page["jobs"], word),
    }
    for word in COLLECTIVES
}
"""Of each job, by command."""


@pytest.mark.parametrize("measure", MEASURES)
def test_all_commands_print_the_same(site: Site, measure: str) -> None:
    said = {name: ask(site) for name, ask in MEASURES[measure].items()}
    truth = said["measure"]
    assert len(truth) >= 2 and max(truth.values()) > 1, truth
    for name, found in said.items():
        if name == "what-if":  # it lists the jobs that change
            assert found
            expected = {job: value for job, value in truth.items() if job in found}
        else:
            expected = truth
        rounded = 1e-5 if name == "job days" else 1e-9  # it keeps ms, of ten minutes
        assert found == pytest.approx(expected, rel=rounded, abs=rounded), name


def test_the_largest_load_is_that_of_the_history(site: Site) -> None:
    largest = site.say("measure")["load_max"]
    assert site.page["measures"]["load_max"] == pytest.approx(largest, abs=1e-9)
    (first, *_) = reversed(dict(said("history", "--config", site.config, "--json"))["decisions"])
    assert first["before"]["load_max"] == pytest.approx(largest, abs=1e-9)
    leaf = re.search(r'# "(leaf0|S1-0)"', site.text)
    assert leaf
    before = site.say("what-if", "--down", leaf[1])["load"][0]
    assert before == pytest.approx(largest, abs=1e-9)


def test_the_agent_plans_what_route_and_assess_plan(site: Site) -> None:
    out = site.folder / "planned"
    routed = dict(said("route", *site.dumps, "--engine", "sar-plus", "--out", out, "--json"))
    assert routed["jobs"] == site.page["jobs_total"]
    measured = dict(said("measure", *site.dumps, "--routes", out, "--json"))
    assert site.page["planned"]["load_max"] == pytest.approx(measured["load_max"], abs=1e-9)
    both = ("--engine", "sar-plus", "--engine", "ftree")
    rated = {
        each["engine"]: each
        for each in site.say("assess", "--no-simulate", *both, "--out", out / "page")["engines"]
    }
    own = rated["sar-plus"]
    mean = {
        name: np.mean(list(loads(each["jobs_detail"]).values())) for name, each in rated.items()
    }
    assert mean["sar-plus"] <= mean.get("ftree", np.inf) + 1e-9
    assert loads(own["jobs_detail"]) == pytest.approx(loads(measured["jobs_detail"]), abs=1e-9)
    assert own["parts"] == measured["parts"] == routed["parts"]


def test_place_foresees_what_is_measured_then(site: Site, tmp_path: Path) -> None:
    """The proposed nodes, once a job runs on them."""
    placed = site.say("place", "-N", "3", "--nodes", site.folder / "nodes")
    best = placed["candidates"][-1]
    queue = tmp_path / "jobs"
    line = f"9|RUNNING|{','.join(best['hosts'])}|batch|root||1|2026-01-01T00:00:00|\n"
    queue.write_text((site.folder / "jobs").read_text() + line)
    tables = ("--fabric", site.folder / "fabric", "--routes", site.folder / "m/lfts.dump")
    then = dict(said("measure", *tables, "--jobs", queue, "--json"))
    rows = {row["job"]: row for row in then["jobs_detail"]}
    at_once = 1 / rows["9"]["throughput"] if "9" in rows else 1.0
    assert best["at_once"] == pytest.approx(at_once, abs=1e-9)
    slowed = {each["job"]: each["after"] for each in best["slowed"]}
    assert slowed == pytest.approx({job: loads([rows[job]])[job] for job in slowed}, abs=1e-9)


def test_parts_are_rails_where_the_cabling_has_them(
    request: pytest.FixtureRequest, site: Site
) -> None:
    parts = FABRICS[request.node.callspec.params["site"]][1]
    measured = site.say("measure")
    assert measured["parts"] == measured["jobs"] * parts
    assert len(measured["jobs_detail"]) == measured["jobs"] == site.page["jobs_total"]
    if parts > 1:
        whole = site.say("measure", "--traffic", "alltoall")
        assert whole["parts"] == whole["jobs"] == measured["jobs"]
        assert whole["load_max"] != measured["load_max"]
        assert site.say("measure", "--traffic", "rail") == measured


def test_the_option_means_the_same_to_what_reads_a_configuration(
    site: Site, tmp_path: Path
) -> None:
    config = tmp_path / "agent.toml"
    other = f'state_dir = "{tmp_path}/state"'
    config.write_text(re.sub(r"state_dir = .*", other, site.config.read_text()))
    given = ("--traffic", "alltoall", "--config", config)
    whole = site.say("measure", "--traffic", "alltoall")
    found = {}
    for job in loads(whole["jobs_detail"]):
        told = dict(said("explain", job, *given, "--json"))
        found[job] = told["in_force"]["load"]
    assert found == pytest.approx(loads(whole["jobs_detail"]), abs=1e-9)
    done = sar_agent("once", *given)
    assert done.returncode == 0, done.stderr
    [row] = dict(said("history", "--config", config, "--json"))["decisions"]
    assert row["before"]["load_max"] == pytest.approx(whole["load_max"], abs=1e-9)
    for command in (("explain", "1"), ("once",), ("run",)):
        done = sar_agent(*command, "--traffic", "both", "--config", config)
        assert done.returncode == 2
        assert "'both' is neither rail nor alltoall" in " ".join(done.stderr.split())


def test_a_grid_that_does_not_fit_is_said_once_by_every_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each command has a job of its own, since a process says it once; the tables and measures are
    those of a job that declares nothing."""
    fabric, jobs, made = tmp_path / "fabric", tmp_path / "jobs", tmp_path / "made"
    fabric.write_text(FABRICS["tree"][0])
    tables, config = ("--routes", made), tmp_path / "agent.toml"

    def ask(number: int, *command: str | Path, hint: str = "stencil2d:4x4") -> str:
        own = {"%i": str(number), "%N": "n[0-5]", "%k": f"sar:{hint}"}
        config.write_text(
            f'[agent]\nstate_dir = "{tmp_path}/state"\nrun_dir = "{tmp_path}/run"\n'
            f'[slurm]\nsqueue = ["{fake_squeue(tmp_path, [own])}"]\ntopology_conf = ""\n'
            f'[fabric]\nfile = "{fabric}"\n[opensm]\nlfts_dump = "{made}/lfts.dump"\n'
        )
        jobs.write_text(f"{number}|RUNNING|n[0-5]|b|u|a|6|2026-01-01T00:00:00|sar:{hint}\n")
        given = ("--fabric", fabric, "--jobs", jobs)
        done = sar_agent(*command, *(("--config", config) if "explain" in command else given))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def said_of(number: int) -> list[str]:
        said = [each.getMessage() for each in caplog.records if "declare" in each.getMessage()]
        caplog.clear()
        assert len(said) == (number > 0)
        return said

    assess = ("assess", *tables, "--no-simulate", "--engine", "minhop", "--out", tmp_path / "page")
    answers = {}
    for number, command in enumerate((
        ("route", "--engine", "sar-plus", "--out", made, "--export", "lfts"),
        ("measure", *tables, "--json"), ("link", *tables, "--job", "72"),
        ("what-if", *tables, "--down", "S2-0"), assess, ("explain", "75"),
    ), 70):  # fmt: skip
        answers[str(command[0])] = ask(number, *command)
        assert said_of(number) == [
            f"job {number} declares stencil2d:4x4, which does not fit: a grid of 4x4 needs 16 "
            "ranks, the job has 6; it counts as a job that declares nothing"
        ]
    plain = json.loads(ask(71, "measure", *tables, "--json", hint="none"))
    assert json.loads(answers["measure"]) == plain
    assert said_of(0) == []


ELSEWHERE = {
    "history": "in test_the_largest_load_is_that_of_the_history",
    "route": "in test_the_agent_plans_what_route_and_assess_plan; it prints loads of engines alone "
    "that write no tables",
    "place": "in test_place_foresees_what_is_measured_then",
    "cables": "channels alone, of the same traffic as link",
    "/api/loads.json": "channels alone, of the page's traffic",
    "/api/link.json": "channels alone, of the page's traffic",
    "demo": "by assess, of synthetic jobs",
    "path": "channels alone, in test_the_way_between_two_hosts_has_the_loads_of_link",
    "packets": "simulated times, of the jobs' parts",
    "replay": "by measure, of a history",
}


def test_the_way_between_two_hosts_has_the_loads_of_link(site: Site) -> None:
    links = [link for job in JOBS for link in site.say("link", "--job", job)["links"]]
    of_link = {way["name"]: way["load"] for link in links for way in link["directions"]}
    ways = [way for path in site.say("path", "n0", "n4", "--job", "1")["paths"]
            for way in path["cables"] if way["name"] in of_link]  # fmt: skip
    assert ways
    for way in ways:
        assert way["load"] == pytest.approx(of_link[way["name"]], abs=1e-9), way["name"]


def test_a_command_that_prints_a_load_is_compared() -> None:
    """By the keys of the JSON objects, and their meanings."""
    objects = json_objects()
    word = re.compile(r"\bloads?\b|load_max|contention|throughput|times as long|times of|measures")
    inner = {key.object for keys in objects.values() for key in keys}

    def tells(name: str, seen: frozenset[str] = frozenset()) -> bool:
        return any(
            word.search(key.name) or word.search(key.meaning)
            or (key.object and key.object not in seen and tells(key.object, seen | {key.object}))
            for key in objects[name]
        )  # fmt: skip

    found = {name for name in objects if name not in inner and tells(name)}
    compared = {name for commands in MEASURES.values() for name in commands} - {"job days"}
    assert found == compared | ELSEWHERE.keys()
