"""A package from outside the tree: modules and entry points on `sys.path`, as pip would install."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from sar_agent.util.extensions import installed


@contextmanager
def installed_package(folder: Path, module: str, source: str, points: str) -> Iterator[None]:
    """Within it the module `module` of this source is installed, in the package `toy-<module>`;
    `points` is the content of its entry_points.txt."""
    site = folder / "site"
    metadata = site / f"toy_{module}-0.1.dist-info"
    metadata.mkdir(parents=True)
    (site / f"{module}.py").write_text(dedent(source))
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-{module}\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(dedent(points))
    sys.path.insert(0, str(site))
    installed.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        sys.modules.pop(module, None)
        installed.cache_clear()
