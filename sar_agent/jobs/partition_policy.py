"""The policy file: how partitions are isolated. `docs/partitions.md` has a full example.

```toml
conf = "partitions.conf"      # OpenSM's file, beside this one; or: jobs = true
mode = "strict"               # or "best-effort"
[partition.gold]
policy = "phy"                # vlane, def
weights = { n001 = 100.0 }
```
"""

from __future__ import annotations

import re
import reprlib
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_agent.errors import InputError
from sar_agent.fabric.model import Fabric
from sar_agent.jobs.model import JobMix
from sar_agent.jobs.partitions import (
    Partition,
    Partitions,
    Policy,
    make_partitions,
    weights_from_counters,
)
from sar_agent.jobs.partitions_conf import read_partitions_conf
from sar_agent.util.text_files import read_text

Weight = Annotated[float, Field(gt=0, le=1e6)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PartitionPolicy(_Model):
    """The policy of one partition."""

    policy: Literal["phy", "vlane", "def"] = "def"
    group: str = ""
    hosts: list[str] = []
    weights: dict[str, Weight] = {}


class PolicyFile(_Model):
    """The whole file."""

    conf: str = ""
    jobs: bool = False
    mode: Literal["strict", "best-effort"] = "strict"
    balance: Literal["partitions", "jobs"] = "partitions"
    phy_links_most: Annotated[float, Field(gt=0, le=1)] = 1.0
    weights: dict[str, Weight] = {}
    counters: str = ""
    partition: dict[str, PartitionPolicy] = {}


def read_partitions(path: Path, fabric: Fabric, mix: JobMix) -> tuple[Partitions, list[str]]:
    """(partitions, notes) of a policy file, or of a bare partitions.conf with no policies.

    Raises `InputError` with the file and the key or line.
    """
    if path.suffix != ".toml":
        parts, notes = read_partitions_conf(path, fabric)
        return make_partitions(parts, fabric, strict=False), notes
    given = _parse(path)
    if given.conf:
        parts, notes = read_partitions_conf(path.parent / given.conf, fabric)
    else:
        parts, notes = [], []
    if given.jobs:
        parts += [Partition(job.id, 0, job.terminals) for job in mix.whole_jobs]
    by_name = {part.name: part for part in parts}
    for name, policy in given.partition.items():
        if policy.hosts:
            terminals = [t for host in policy.hosts for t in _ports(path, fabric, host)]
            by_name[name] = Partition(name, 0, np.unique(np.array(terminals, np.int32)))
        if name not in by_name:
            known = ", ".join(list(by_name)[:8]) or "none"
            raise InputError(f"partition.{name}: there is no such partition", file=path,
                             remedy=f"known are {known}; or list its hosts")  # fmt: skip
        by_name[name] = Partition(
            name,
            by_name[name].key,
            by_name[name].terminals,
            Policy[policy.policy.upper()],
            policy.group,
            {t: w for host, w in policy.weights.items() for t in _ports(path, fabric, host)},
        )
    weight = _counted(path.parent / given.counters, fabric) if given.counters else {}
    weight |= {t: w for host, w in given.weights.items() for t in _ports(path, fabric, host)}
    try:
        partitions = make_partitions(
            by_name.values(),
            fabric,
            strict=given.mode == "strict",
            phy_links_most=given.phy_links_most,
            weight=weight,
            balance_jobs=given.balance == "jobs",
        )
    except InputError as error:
        raise InputError(error.what, file=path, remedy=error.remedy) from error
    return partitions, notes


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 80  # a value may be lists nested without end


def _parse(path: Path) -> PolicyFile:
    try:
        return PolicyFile.model_validate(tomllib.loads(read_text(path)))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{key} = {_brief.repr(first['input'])}: {first['msg'].removeprefix('Input ')}",
            file=path,
            remedy="docs/partitions.md lists the keys",
        ) from error
    except (ValueError, RecursionError) as error:  # tomllib's own, and of a number without end
        line = re.search(r"line (\d+)", str(error))
        raise InputError(
            f"is not TOML: {error}", file=path, line=int(line[1]) if line else None
        ) from error


def _ports(path: Path, fabric: Fabric, host: str) -> tuple[int, ...]:
    if host not in fabric.hosts:
        raise InputError(f"{host}: no such host in the fabric", file=path,
                         remedy="names are those of node descriptions")  # fmt: skip
    return fabric.hosts[host]


def _counted(path: Path, fabric: Fabric) -> dict[int, float]:
    """Weights by terminal, by Equation 1, from lines `PORTGUID COUNT` (e.g. bytes received)."""
    terminal = {int(guid): t for t, guid in enumerate(fabric.terminal_guid)}
    ports, counts = [], []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            guid, count = int(words[0], 0), float(words[1])
        except (ValueError, IndexError) as error:
            raise InputError(f"{line.strip()[:40]!r} is not `PORTGUID COUNT`", file=path,
                             line=number) from error  # fmt: skip
        if guid in terminal and count >= 0:
            ports.append(terminal[guid])
            counts.append(count)
    mapped = weights_from_counters(np.array(counts))
    return dict(zip(ports, mapped.tolist(), strict=True))
