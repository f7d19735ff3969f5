"""The share of random failures that the plugin repairs whole, without agent and OpenSM."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sar_agent.formats.routes_file import RoutesFile
from tests.bench.table import Table
from tests.worlds.repair_program import repairing
from tests.worlds.repairs import failures, plan_of

FABRICS = (
    ("xgft:2;6,6;1,4", "sar-plus"),
    ("xgft:3;3,3,3;1,3,3", "sar-plus"),
    ("xgft:3;3,3,3;1,3,3", "updn"),
    ("torus:4x4,hosts=2", "updn"),
    ("torus:3x3x3", "updn"),
    ("dragonfly:a=4,h=2,p=1", "updn"),
)
KINDS = ("cable", "few", "many", "spine", "leaf")
COUNT, FULL = 250, 1_430
"""Failures of each fabric, in equal parts of each kind; in full some 10,000 in all."""


def tables(full: bool) -> Iterator[Table]:
    """One table; `full` tries more."""
    count = FULL if full else COUNT
    table = Table(
        f"Failures that the plugin repairs whole, {count:,} a fabric",
        ("fabric", "tables", "one cable", "three cables", "2.5 % of cables", "a switch"),
        "The routes of `mix:1` are in force before each failure, which is drawn at random. Whole: "
        "all live hosts reach each other along rising numbers again, in one step or two. Tables: "
        "the engine, in one lane; the agent repairs routes in several. A switch: any, where all "
        "bear hosts; its own hosts do not count.",
    )
    for spec, engine in FABRICS:
        plan = plan_of(spec, engine, seed=1)
        if plan is None:
            table.goals.append(f"{spec}, {engine}: its paths close a credit loop in one lane")
            continue
        whole, tried = _repaired(plan, count // len(KINDS))
        cells = [f"{whole[kind] / tried[kind]:.1%}" for kind in KINDS[:3]]
        switches = (whole["spine"] + whole["leaf"]) / (tried["spine"] + tried["leaf"])
        table.add(f"`{spec}`", engine, *cells, f"{switches:.1%}")
    yield table


def _repaired(plan: RoutesFile, count: int) -> tuple[Counter[str], Counter[str]]:
    """By kind: how many failures were repaired whole, and how many were tried."""
    rng, whole, tried = np.random.default_rng(1), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, repairing(plan, Path(folder)) as program:
        for _ in range(count):
            for kind in KINDS:
                program.load(plan)
                commands = failures(plan, rng, kind).commands()
                done = program.go(commands)
                while not done.refusal and done.later and done.entries:
                    done = program.go(commands)
                tried[kind] += 1
                whole[kind] += not (done.refusal or done.dropping)
    return whole, tried
