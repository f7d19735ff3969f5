"""`anonymize`: every measure of every command is the same before and after, for any queue."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.job_files import read_jobs_file
from tests.examples import examples
from tests.worlds.command_line import sar_agent

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
FABRIC = EXAMPLES / "cluster.ibnetdiscover"
TABLES = "opensm-lfts.dump"
HINTS = ("", "sar:weight=0.1", "x sar:weight=7", "sar:ring", "sar:stencil2d:2x3", "sar:secret", "|")
SPELLINGS = "n{:03d}", "N{:03d}", "n{:03d}.cluster.site"
jobs = st.lists(
    st.tuples(
        st.sets(st.integers(1, 40), min_size=1, max_size=12),  # n037 to n040 are not in the fabric
        st.sampled_from(HINTS),
        st.sampled_from(("secretpart", "otherpart", "")),
        st.sampled_from(SPELLINGS),
        st.sampled_from(("RUNNING", "PENDING")),
    ),
    min_size=1,
    max_size=6,
)


def numbers(value: Any, key: str = "") -> Any:
    """An answer without names, GUIDs, digests and start times."""
    if isinstance(value, dict):
        kept = {k: numbers(each, k) for k, each in value.items() if "guid" not in k}
        return {k: each for k, each in kept.items() if k not in ("since", "start", "time", "job")}
    if isinstance(value, list):
        return [numbers(each, key) for each in value]
    return None if isinstance(value, str) else value


def answer(*arguments: str | Path) -> tuple[int, Any]:
    done = sar_agent(*arguments, "--json")
    return done.returncode, numbers(json.loads(done.stdout)) if done.stdout else done.stderr


def answers(folder: Path, fabric: str, queue: str, tables: str) -> dict[str, tuple[int, Any]]:
    """What each command says of the dumps in a folder, by command."""
    network = load_fabric(folder / fabric)
    given_files = ("--fabric", folder / fabric, "--jobs", folder / queue)
    routes = ("--routes", folder / tables)
    leaf = network.switch_name[int(network.leaves[0])]
    return {
        "measure": answer("measure", *given_files, *routes),
        "link": answer("link", leaf, *given_files, *routes),
        "cables": answer("cables", *given_files, *routes),
        "what-if": answer("what-if", "--down", leaf, *given_files, *routes),
    }


@given(jobs)
@examples(6)
def test_every_measure_is_the_same_after_anonymize(queue: list[Any]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in (FABRIC, EXAMPLES / TABLES):
            (folder / file.name).write_bytes(file.read_bytes())
        lines = [
            f"{number}|{state}|{','.join(spelt.format(n) for n in sorted(hosts))}|{partition}|ada|"
            f"phys|{len(hosts)}|2026-11-20T08:12:44|{hint}"
            for number, (hosts, hint, partition, spelt, state) in enumerate(queue, 17)
        ]
        (folder / "queue").write_text("\n".join(lines) + "\n")
        done = sar_agent(
            *("anonymize", "--fabric", folder / FABRIC.name, "--jobs", folder / "queue"),
            *("--routes", folder / TABLES, "--out", folder / "copy", "--key", "k"),
        )
        assert done.returncode == 0, done.stderr
        copy = (folder / "copy/jobs.txt").read_text()
        for word in ("secret", "|ada|", "|phys|", "otherpart", "n001", "site"):
            assert word not in copy.lower()
        before = answers(folder, FABRIC.name, "queue", TABLES)
        assert before["link"][0] == 0
        assert answers(folder / "copy", "fabric.net", "jobs.txt", "lfts.dump") == before
        ours, theirs = (
            read_jobs_file(path) for path in (folder / "queue", folder / "copy/jobs.txt")
        )
        parts = [[job.partition for job in each] for each in (ours, theirs)]
        assert len(set(zip(*parts, strict=True))) == len(set(parts[0])) == len(set(parts[1]))
