"""The command line is a contract: keys of its JSON, exit codes, one line per error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from sar_agent.cli import app
from sar_agent.commands.engine_options import NOT_OFFERED
from sar_agent.config.engine import Options
from sar_lab.cli import app as lab_app
from tests.data import data_path
from tests.worlds.command_line import TREE, said, sar_agent, sar_lab

SAME = ("--fabric", TREE, "--jobs", "mix:1")
FABRICS = ("psmn-x5", "small-2014", "dgx-ndr", "selene-storage", "director-notabs")
ROUTE_KEYS = {"engine", "seconds", "virtual_lanes", "unreachable_pairs", "peak_rss_mb"}
MEASURE_KEYS = {
    "switches", "terminals", "channels", "jobs", "dark_fiber_ratio", "effective_efi_max",
    "effective_efi_mean", "lower_bound_efi_max", "load_max", "lower_bound_load_max",
    "throughput_mean", "throughput_min", "jobs_detail", "virtual_lanes", "least_dark_fiber",
    "lower_bounds",
}  # fmt: skip
BAD = (
    "no spec", "bad tree", "folder", "noise", "two pieces", "job line",
    "seed", "placed", "blocks", "export", "not a number", "no routes",
)  # fmt: skip
ENGINES = (
    "ark colored dfsssp dmodc dmodk dor ftree minhop nrk opensm-ftree parx pftree pftree-combined "
    "pftree-ext pftree-wt random rnca-d rnca-u sar sar-plus smodk updn"
)
SITE_ENGINES = "sar-plus sar ftree dmodc"
JOB_KEYS = {"job", "terminals", "switches", "efi_max", "efi_own_max", "links", "throughput"}


def routed_measured_checked(fabric: str | Path, jobs: str | Path, engine: str, out: Path) -> None:
    same = ("--fabric", fabric)
    route = said("route", *same, "--jobs", jobs, "--engine", engine, "--out", out, "--json")
    assert set(route) >= ROUTE_KEYS
    assert (route["engine"], route["unreachable_pairs"]) == (engine, 0)
    measures = said("measure", *same, "--jobs", jobs, "--routes", out, "--json")
    assert set(measures) >= MEASURE_KEYS
    assert isinstance(measures["jobs_detail"], list)
    assert all(set(job) >= JOB_KEYS for job in measures["jobs_detail"])
    assert len(measures["jobs_detail"]) == measures["jobs"] == route["jobs"]
    assert said("check", *same, "--routes", out, "--from", out, "--json")["entries_changed"] == 0


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "sar", "sar-plus"])
def test_the_contract_on_a_tree(engine: str, tmp_path: Path) -> None:
    routed_measured_checked(TREE, "mix:3", engine, tmp_path / "new" / "folder")


@pytest.mark.data
@pytest.mark.parametrize("name", FABRICS)
def test_the_contract_on_real_fabrics(name: str, tmp_path: Path) -> None:
    routed_measured_checked(data_path(f"{name}.ibnetdiscover"), "mix:1", "sar", tmp_path)


@pytest.mark.data
def test_jobs_of_a_real_queue(tmp_path: Path) -> None:
    """Slurm's sample of 1,728 nodes names them as the tree's hosts are named."""
    jobs = data_path("slurm/squeue_5000_pipe.txt")
    routed_measured_checked("xgft:3;12,12,12;1,12,12", jobs, "sar", tmp_path)


def test_engines_lists_a_name_and_what_it_is() -> None:
    *lines, more = sar_agent("engines").stdout.splitlines()
    assert [line.split()[0] for line in lines] == SITE_ENGINES.split()
    assert more == "`sar-agent engines --all` lists 18 more"
    lines = sar_agent("engines", "--all").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == SITE_ENGINES.split()
    assert sorted(line.split()[0] for line in lines) == ENGINES.split()
    assert all(len(line.split()) > 3 for line in lines)
    assert said("engines", "--json")["engines"]
    unknown = sar_agent("route", *SAME, "--engine", "sorplus")
    assert unknown.returncode == 2
    assert "use one of sar-plus, sar, ftree, dmodc (`sar-agent engines --all`" in unknown.stderr


def test_help_lists_the_commands_in_groups_operators_first() -> None:
    done = sar_agent("--help")
    text = done.stdout
    heads = [line for line in text.splitlines()[1:] if re.match(r"\w.*:$", line)]
    assert [head.split()[0] for head in heads] == [
        *("Options:", "Operate", "Look", "For", "Evaluate:"),
    ]
    assert text.index("rollback") < text.index(" route ") < text.index("assess")
    assert "warm-up" not in text and "fetch-state" not in text, "units call them"


def test_the_laboratory_is_a_program_of_its_own() -> None:
    names = [name for name, _ in commands_of(get_command(lab_app))]
    assert names == [
        *("emulate", "hours", "replay", "simulate-time"),
        *("simulate-trace", "make-trace", "packets", "count-congestion", "lab list", "lab run"),
    ]
    assert not {*names} & {name for name, _ in commands_of(get_command(app))}
    wrong = sar_lab("fly")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "sar-lab: No such command 'fly'. See sar-lab --help\n",
    )
    none = sar_lab("simulate-time", *SAME)
    assert none.returncode == 2 and none.stderr.startswith("sar-lab: no routes to simulate; ")


def test_help_names_the_unit_of_times() -> None:
    assert re.search(r"--hold +TIME", sar_agent("rollback", "--help").stdout)
    refused = sar_agent("rollback", "--hold", "30")
    assert refused.returncode == 2
    assert "--hold 30 is no time; write 90s, 90m, 2h or 1d" in refused.stderr
    text = sar_agent("key", "request", "--help").stdout
    assert re.search(r"--wait +SECONDS", text) and re.search(r"--lease +SECONDS", text)


def commands_of(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands_of(command, f"{before}{name} ")
        else:
            yield before + name, command


def test_route_has_an_option_for_every_option_of_engines() -> None:
    route = dict(commands_of(get_command(app)))["route"]
    names = {option.name for option in route.params}
    assert names >= {field.name for field in fields(Options)} - {*NOT_OFFERED}
    too_many = sar_agent("route", *SAME, "--max-lanes", "16")
    assert too_many.returncode == 2 and "--max-lanes" in too_many.stderr


def test_unknown_hosts_are_named_and_left_out(tmp_path: Path) -> None:
    jobs = tmp_path / "map"
    jobs.write_text("# a comment\nn001 7\nn006 7\nelsewhere 7\n")
    done = sar_agent("route", "--fabric", TREE, "--jobs", jobs, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["jobs"] == 1
    assert "1 host of jobs is not in the fabric and left out: elsewhere" in done.stderr


def bad(tmp_path: Path) -> dict[str, tuple[list[str | Path], str]]:
    """What a person gets wrong, and a word of what they are told."""
    (tmp_path / "noise").write_bytes(bytes(range(256)))
    (tmp_path / "jobs").write_text("n001\n")
    (tmp_path / "pieces.net").write_text(
        'Switch 4 "a"\n[1] "h"[1]\n\nSwitch 4 "b"\n[1] "i"[1]\n\n'
        'Hca 1 "h"\n[1] "a"[1]\n\nHca 1 "i"\n[1] "b"[1]\n'
    )
    jobs: list[str | Path] = ["--jobs", "mix:1"]
    return {
        "no spec": (["route", "--fabric", "ring:5", *jobs], "xgft"),
        "bad tree": (["route", "--fabric", "xgft:3;4,4;1,2", *jobs], "height"),
        "folder": (["route", "--fabric", tmp_path, *jobs], str(tmp_path)),
        "noise": (["route", "--fabric", tmp_path / "noise", *jobs], "noise"),
        "two pieces": (["route", "--fabric", tmp_path / "pieces.net", *jobs], "piece"),
        "job line": (["route", "--fabric", TREE, "--jobs", tmp_path / "jobs"], "jobs:1"),
        "seed": (["route", "--fabric", TREE, "--jobs", "mix:x"], "seed"),
        "placed": (["route", "--fabric", TREE, "--jobs", "mix:1,placed=x"], "placed=tree"),
        "blocks": (["route", "--fabric", TREE, "--jobs", "blocks:9999"], "9999"),
        "export": (
            ["route", "--fabric", TREE, *jobs, "--out", tmp_path / "o", "--export", "x"],
            "lfts, ibdm, ibsim",
        ),
        "not a number": (["route", "--fabric", TREE, *jobs, "--seed", "x"], "--seed"),
        "no routes": (["check", "--fabric", TREE, "--routes", tmp_path], "routes.sar"),
    }  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case: str, tmp_path: Path) -> None:
    arguments, word = bad(tmp_path)[case]
    done = sar_agent(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert word in done.stderr
    assert not (tmp_path / "o").exists()


def test_routes_of_another_fabric(tmp_path: Path) -> None:
    sar_agent("route", "--fabric", TREE, "--jobs", "mix:1", "--out", tmp_path)
    other = sar_agent("check", "--fabric", "xgft:2;4,5;1,2", "--routes", tmp_path)
    note, verdict = other.stderr.splitlines()
    assert other.returncode == 1
    assert "made for other nodes or cables" in note
    assert "do not reach" in verdict


def test_a_credit_loop_is_named_and_never_written(tmp_path: Path) -> None:
    """Shortest paths on a torus turn in circles, and Up*/Down* paths crowd around a switch."""
    args = ("route", "--fabric", "torus:4x4,hosts=1", "--jobs", "mix:1", "--out", tmp_path / "o")
    done = sar_agent(*args)
    assert done.returncode == 1
    assert "its routes close a credit loop in one virtual lane, and Up*/Down*" in done.stderr
    assert not (tmp_path / "o").exists()
    done = sar_agent(*args, "--max-lanes", "4")
    assert done.returncode == 0 and "no credit loop in 3 virtual lanes" in done.stdout
    assert "note: hosts must take" not in done.stdout
    done = sar_agent(*args, "--max-lanes", "4", "--hosts-use-path-records")
    assert done.returncode == 0 and "note: hosts must take the service level" in done.stdout


@pytest.mark.parametrize("words", ["--help", "route --help", "route --nope", "nope", ""])
def test_help_and_a_mistyped_word_load_no_library(words: str) -> None:
    """Each takes longer to load than the rest of the answer."""
    loaded = _loaded_by(words)
    assert not loaded & {"numpy", "numba", "scipy", "networkx", "pydantic", "rich", "asyncio"}


@pytest.mark.parametrize(
    "words",
    [
        "check --fabric /nope --routes here",
        f"check --fabric {TREE} --routes /nope",
        f"assess --fabric {TREE} --jobs /nope",
        "cables --fabric /nope",
        "once --config /nope",
        "status --config /nope",
    ],
)
def test_a_missing_file_is_refused_before_numpy_is_loaded(words: str) -> None:
    assert not _loaded_by(words) & {"numpy", "numba", "scipy", "networkx", "asyncio"}


def test_python_keeps_its_bytecode_under_make() -> None:
    """Else each command of a new venv compiles all its modules."""
    show = "--eval=shown: ; @echo [$$PYTHONDONTWRITEBYTECODE]"
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["make", "--silent", show, "shown"], cwd=root, env=env, capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr


def _loaded_by(words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import sys; from sar_agent.cli import main\n"
        "try: main()\nexcept SystemExit: print('loaded', *sys.modules)"
    )
    command = [sys.executable, "-c", code, *words.split()]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    loaded = set(said.rpartition("loaded")[2].split())
    assert "sar_agent.cli" in loaded
    return loaded


def test_the_agent_starts_without_what_it_seldom_needs() -> None:
    """Cron starts it once a minute; these take a sixth of a second each, or more."""
    code = "import sys, sar_agent.agent.loop; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    seldom = {"networkx", "matplotlib", "pyarrow", "jinja2", "scipy.sparse"}
    assert "sar_agent.agent.loop" in loaded.split()
    assert not seldom & set(loaded.split())
