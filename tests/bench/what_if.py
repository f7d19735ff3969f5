"""`sar-agent what-if`: how well it ranks single failures before it routes them, and its times."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import SarError
from sar_agent.reports.screening import LEAST_ROUTED, ranked_failures
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.what_if import pulled
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from tests.bench.bench_fabrics import LARGEST, MIDDLE, available, fabric_of, size_of
from tests.bench.table import Table, goal
from tests.bench.timing import Times

TREES = ("xgft:2;12,24;1,12", "xgft:2;24,12;1,12", "xgft:3;4,6,6;1,4,6", "xgft:3;6,4,6;1,3,4",
         "small-2014", "psmn-x5")  # fmt: skip
ENGINES = ("minhop", "ftree", "dfsssp", "sar-plus")
MIXES = ("mix:1", "mix:2")
WORST = 10
GOALS = {MIDDLE: 30.0, LARGEST: 600.0}
"""Seconds for all single failures, the worst of them routed and proved."""


def tables(full: bool) -> Iterator[Table]:
    """The ranking beside all failures routed; then the times of the command."""
    table = Table(
        "Single failures ranked by `what-if` before they are routed",
        ("fabric", "engine", "failures", f"of the {WORST} worst, in the first {WORST}",
         f"in the first {LEAST_ROUTED}"),
        f"Failures that leave all hosts connected, jobs {' and '.join(MIXES)}; the worst are those "
        f"with the largest load after all were routed. At least {LEAST_ROUTED} are routed on any "
        "fabric; on these, all are.",
    )  # fmt: skip
    for name in available(TREES):
        for engine in ENGINES:
            found = [each for mix in MIXES if (each := _ranked_well(name, engine, mix))]
            if found:
                table.add(name, engine, str(found[0][0]),
                          *(", ".join(str(each[i]) for each in found) for i in (1, 2)))  # fmt: skip
    yield table
    yield _times(full)


def _ranked_well(name: str, engine: str, mix: str) -> tuple[int, int, int] | None:
    """Failures; of the worst by brute force, how many are first; None for engines that refuse."""
    fabric, chosen = fabric_of(name), load_engine(engine)
    jobs = mix_of_spec(mix, fabric)
    try:
        dumps = SiteDumps(fabric, (), jobs, routed(chosen, fabric, jobs, Options()))
    except SarError:
        return None
    ranked = [each for each in ranked_failures(dumps) if not each.lost]
    loads = [pulled(dumps, chosen, each.places).load[1] for each in ranked]
    load = [float("inf") if each is None else each for each in loads]
    least = sorted(load, reverse=True)[min(WORST, len(load)) - 1]

    def found(first: int) -> int:
        return min(WORST, sum(each >= least for each in load[:first]))

    return len(ranked), found(WORST), found(LEAST_ROUTED)


def _times(full: bool) -> Table:
    table = Table(
        "Times of `what-if` without `--down`",
        ("fabric", "engine", "single failures", "routed", "seconds", "of that CPU"),
        "The whole command, from its start to its end, with `--jobs mix:1`; kernels were compiled.",
    )
    for spec in (MIDDLE, *((LARGEST,) if full else ())):
        for engine in ("minhop", "sar-plus"):
            said, times = _command(spec, engine)
            words = said.splitlines()[0].split()  # 432 single failures, 50 of them routed
            table.add(size_of(fabric_of(spec)), engine, words[0], words[3], *times)
            table.goals.append(goal(f"{engine} at {spec}", float(times[0]), GOALS[spec], "s"))
    return table


def _command(spec: str, engine: str) -> tuple[str, tuple[str, str]]:
    from resource import RUSAGE_CHILDREN, getrusage

    given = ["what-if", "--fabric", spec, "--jobs", "mix:1", "--engine", engine]
    script = "from sar_agent.cli import main; main()"
    before, times = getrusage(RUSAGE_CHILDREN), Times()
    with times.one():
        done = subprocess.run(
            [sys.executable, "-c", script, *given], capture_output=True, text=True
        )
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 0, done.stderr
    return done.stdout, (f"{times[0]:.1f}", f"{cpu:.1f}")
