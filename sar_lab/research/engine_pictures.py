"""One picture for each engine that serves a tree, of the same three jobs on the same small tree.

`python -m sar_lab.research.engine_pictures docs/images` writes `engine-NAME.svg`; docs/engines.md
shows them.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partition, make_partitions
from sar_agent.quality import measure
from sar_agent.routing import Options, engine_names, load_engine
from sar_lab.assess import drawing
from sar_lab.fluid.path_routes import has_paths
from sar_lab.page_templates import templates
from sar_lab.research.engines.by_source import path_traffic
from sar_lab.research.three_jobs import three_equal_jobs

SPEC = "xgft:3;4,3,3;1,3,2"
HOSTS_PER_JOB = 9
SEED = 4


def job_routes(fabric: Fabric, mix: JobMix, name: str) -> NDArray[np.int64]:
    """int64[C]: effective EFI under an engine; engines that need partitions get one for each
    job."""
    parts = [Partition(job.id, 0, job.terminals) for job in mix.jobs]
    options = Options(
        seed=SEED, pattern="shift:1", partitions=make_partitions(parts, fabric, strict=False)
    )
    engine = load_engine(name)
    if has_paths(engine):
        return path_traffic(engine.paths(fabric, mix, options), mix)[0]
    return measure(fabric, mix, engine.route(fabric, mix, options)).channel_efi


def write_pictures(folder: Path) -> list[Path]:
    """Writes a picture for each engine; returns their paths."""
    fabric = xgft_fabric(SPEC)
    mix = three_equal_jobs(fabric, HOSTS_PER_JOB, SEED)
    efi_by_engine = {}
    for name in engine_names():
        with suppress(Unserved):  # engines of other networks have no picture
            efi_by_engine[name] = job_routes(fabric, mix, name)
    width = drawing.bin_width(*efi_by_engine.values())
    paths = []
    for name, efi in efi_by_engine.items():
        dark = float((efi == 0).mean())
        paths.append(folder / f"engine-{name}.svg")
        paths[-1].write_text(
            templates()
            .get_template("engine.svg")
            .render(
                name=name,
                subtitle=f"hottest link {int(efi.max())} job routes, {dark:.0%} of links dark",
                height=drawing.height(fabric),
                picture=Markup(drawing.draw_network(fabric, efi, width)),
            )
        )
    return paths


if __name__ == "__main__":
    for path in write_pictures(Path(sys.argv[1])):
        print(path)
