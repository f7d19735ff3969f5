"""The engine `opensm-ftree`: tables of a stock OpenSM, asked once for each fabric.

An answer is kept in `~/.cache/sar-agent/opensm` (or `$XDG_CACHE_HOME`) by the digest of the fabric,
the engine, its options and the program that answered. Rows and columns are in the order of GUIDs,
since the digest does not depend on the order in which a file lists nodes. `SAR_ASK_OPENSM=no` asks
nobody, and uses no answer that was kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from sar_agent.errors import SarError, Unavailable, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.routing import Engine, Options, Routes
from sar_agent.util.text_files import write_bytes
from sar_lab.live.ibsim import umad2sim
from sar_lab.live.process import find_program
from sar_lab.opensm_tables.simulated import simulated_routes

log = logging.getLogger(__name__)
SECONDS = 60.0
"""How long OpenSM may take. Above some 5,000 hosts its ftree takes longer."""
ASK = "SAR_ASK_OPENSM"


class OpenSMFtree(Engine):
    """OpenSM's own ftree on a simulation of the fabric; the jobs change nothing."""

    name = "opensm-ftree"
    summary = "OpenSM's own ftree, asked on a simulation (ibsim)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where OpenSM's ftree refuses the fabric, and `SarError` where OpenSM or
        ibsim are not installed or do not answer within `SECONDS`."""
        return asked(fabric, "ftree", {}, self.name)


def asked(fabric: Fabric, engine: str, options: Mapping[str, str], name: str) -> Routes:
    """OpenSM's tables with one of its engines, from what was kept or anew. Raises as
    `simulated_routes`, and `Unavailable` where nobody is to be asked."""
    if os.environ.get(ASK, "").lower() in ("no", "0"):
        raise Unavailable(f"{ASK} is {os.environ[ASK]}")
    find_program("ibsim", "ibsim-utils")
    program = find_program("opensm", "opensm")
    umad2sim()
    path = _folder() / f"{_key(fabric, engine, options, program)}.npz"
    with suppress(OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        with np.load(path, allow_pickle=False) as kept:
            refused, egress = str(kept["refused"]), kept["egress"]
        if refused:
            raise Unserved(refused)
        if egress.shape == (fabric.destinations, fabric.switches):
            return Routes(name, fabric.digest, _by_index(fabric, egress)[None])
    try:
        routes = simulated_routes(fabric, engine, options, SECONDS)
    except Unserved as refusal:
        _keep(path, str(refusal), np.empty((0, 0), np.uint8))
        raise
    _keep(path, "", _by_guid(fabric, routes.egress[0]))
    return Routes(name, fabric.digest, routes.egress[:1])


def _orders(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Destinations and switches in the order of their GUIDs."""
    switches = np.argsort(fabric.switch_guid)
    terminals = np.argsort(fabric.terminal_guid)
    return np.concatenate([terminals, fabric.terminals + switches]), switches


def _by_guid(fabric: Fabric, egress: U8) -> U8:
    ordered: U8 = egress[np.ix_(*_orders(fabric))]
    return ordered


def _by_index(fabric: Fabric, egress: U8) -> U8:
    found = np.empty_like(egress)
    found[np.ix_(*_orders(fabric))] = egress
    return found


def _key(fabric: Fabric, engine: str, options: Mapping[str, str], program: str) -> str:
    found = Path(program).stat()
    said = [engine, sorted(options.items()), program, found.st_size, found.st_mtime_ns]
    text = json.dumps(said).encode()
    return f"{fabric.digest.hex()[:32]}-{hashlib.blake2b(text, digest_size=8).hexdigest()}"


def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "sar-agent" / "opensm"


def _keep(path: Path, refused: str, egress: U8) -> None:
    """An answer that cannot be kept is asked for again."""
    packed = BytesIO()
    np.savez_compressed(packed, refused=np.array(refused), egress=egress)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, packed.getvalue())
    except (OSError, SarError) as error:
        log.info("OpenSM's answer is not kept: %s", error)
