"""The fabric from a file or from a command such as ibnetdiscover, where the subnet manager is not
asked for it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from sar_agent.config.model import FabricConfig
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import FOLDER_FILES, load_fabric, parse_fabric
from sar_agent.util.file_versions import FileVersion, version_of
from sar_agent.util.programs import run_program
from sar_agent.util.text_files import read_text

MOST_BYTES = 256 * 2**20
"""Bytes that ibnetdiscover may print; a fabric of 11,664 hosts is 10 MB."""


_WHEN = re.compile(r"^(# Topology file: generated on ).*$", re.MULTILINE)


def read_fabric(config: FabricConfig) -> Fabric:
    """The fabric now. Raises `SarError` where the command or the file fails."""
    if config.file and Path(config.file).is_dir():
        return load_fabric(config.file, config.mapper)
    if config.file:
        name, text = config.file, read_text(Path(config.file))
    else:
        name = config.command[0]
        text = _run(tuple(config.command), config.deadline_seconds, config.environment)
    return _parsed(_WHEN.sub(r"\1", text + "\n", count=1), name, config.mapper)


def fabric_version(config: FabricConfig) -> FileVersion | None:
    """Of `fabric.file`; None without one, or where it is gone."""
    return version_of(Path(config.file), FOLDER_FILES) if config.file else None


_parsed = lru_cache(maxsize=1)(parse_fabric)
"""Mostly the text is that of the pass before, but for its time."""


@retry(
    retry=retry_if_exception_type(Unavailable),
    stop=stop_after_attempt(2),
    wait=wait_fixed(0.5),
    reraise=True,
)
def _run(command: tuple[str, ...], deadline: float, environment: dict[str, str]) -> str:
    with _scratch_folder() as folder:
        return run_program(
            command,
            deadline=deadline,
            most=MOST_BYTES,
            remedy="install infiniband-diags or set fabric.command or fabric.file",
            environment=os.environ | environment,
            folder=folder,
        )


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """A folder to run the command in: under a simulator the tools leave files where they run. It is
    `/` where /tmp has no room for a folder: ibnetdiscover itself needs none, and a full disk is no
    reason not to see the fabric."""
    with ExitStack() as stack:
        folder = Path("/")
        with suppress(OSError):
            made = tempfile.TemporaryDirectory(prefix="sar-agent-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
        yield folder
