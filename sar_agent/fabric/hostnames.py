"""Maps node descriptions to host names: `n001 HCA-1` is port `HCA-1` of Slurm's `n001`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from sar_agent.errors import InputError
from sar_agent.fabric.name_patterns import between_commas, matches, matches_host
from sar_agent.fabric.slurm_names import SlurmNames
from sar_agent.util.plural import plural

HOST_PATTERN = r"(?:MF0;)?(?P<host>[^\s:;]+)(?:[\s:]+(?P<hca>\S.*?))?"
"""`host`, `host HCA-1`, `host mlx5_0`, `host ibp11s0f0`, `host hfi1_0`, `MF0;host:MODEL/U1`."""

VENDOR_NAMES = (
    "MT[0-9]* ConnectX*",
    "*Mellanox Technologies*",
    "*InfiniHost*",
    "localhost*",
    "NVIDIA *",
    "QLogic *",
    "Voltaire *",
    "(none)*",
    "HCA-[0-9]*",
    "mlx[0-9]_[0-9]*",
    "mthca[0-9]*",
    "hfi1_[0-9]*",
    "ubuntu",
    "ubuntu *",
    "debian",
    "debian *",
)
"""Descriptions by firmware or an unconfigured system: they contain no host's name."""

MANY, MOST_HCAS = 3, 16
"""A description of so many HCAs is no host's where it names the HCA, or its host has no number; of
more than the second, in any case."""

AGGREGATION_NODES = ("*Aggregation Node*",)
"""SHARP's in-switch reduction units: they have ports of their own, but are not hosts."""


class Kind(IntEnum):
    """The use of a terminal: SAR balances compute first, then storage, then the rest."""

    COMPUTE = 0
    STORAGE = 1
    OTHER = 2  # routers, login and management nodes
    IN_SWITCH = 3  # SHARP aggregation units: inside switches, not hosts


class HostPort(NamedTuple):
    """The content of a node description."""

    host: str | None
    """The host's name in Slurm; None where the description holds no name."""
    hca: str
    """The HCA, `mlx5_0`; empty where the description does not name it."""
    kind: Kind


class NamedTerminal(NamedTuple):
    """A terminal's host (always with a name), HCA and kind."""

    host: str
    hca: str
    kind: Kind


@dataclass(frozen=True)
class HostMapper:
    """The configured mapping from a node description to host, HCA and kind.

    Raises `InputError`, naming the key, where `host_pattern` is not a regular expression or has no
    group `host`, and where `traffic` is another word.
    """

    host_pattern: str = HOST_PATTERN
    """Regular expression for a whole description; groups `host` and, optionally, `hca`."""
    vendor_names: tuple[str, ...] = VENDOR_NAMES
    """Patterns of descriptions that contain no host's name."""
    storage_hosts: tuple[str, ...] = ()
    """Patterns of host names, `ai400x-*`."""
    other_hosts: tuple[str, ...] = ()
    """Patterns of host names: login, management, …; storage takes precedence where both match."""
    short_names: bool = True
    """Cut `n001.cluster.org` to `n001`, as Slurm's NodeName usually is."""
    slurm_names: tuple[str, ...] = ()
    """`SLURM=FABRIC`: how Slurm's names of nodes differ from those in descriptions
    (`slurm_names.py`)."""
    job_hcas: tuple[str, ...] = ()
    """Patterns of the HCAs (`mlx5_[0-11]`) or HCA ports (`mlx5_0/1`) that jobs use; empty: all."""
    traffic: str = ""
    """Whom a job's port sends to: `rail`, to the same port of the other hosts; `alltoall`, to all
    ports; empty: as the cabling shows (`demand/rails.py`)."""
    long: frozenset[str] = frozenset()
    """Short names of several hosts, which keep their domains; `among` finds them."""
    nameless: frozenset[str] = frozenset()
    """Descriptions without a host's name; `among` finds them."""

    def __post_init__(self) -> None:
        # Configuration files give lists; a frozen, hashable object needs tuples.
        for key in ("vendor_names", "storage_hosts", "other_hosts", "job_hcas", "slurm_names"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        if self.traffic not in ("", "rail", "alltoall"):
            raise InputError(
                f"traffic: {self.traffic!r} is neither rail nor alltoall",
                remedy="leave it out: then it is as the cabling shows",
            )
        _ = self._regex, self._slurm

    @cached_property
    def _slurm(self) -> SlurmNames:
        return SlurmNames(self.slurm_names)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        try:
            regex = re.compile(self.host_pattern)
        except re.error as error:
            raise InputError(
                f"host_pattern: {self.host_pattern!r} is not a regular expression ({error})",
                remedy="correct it or leave the key out",
            ) from error
        if "host" not in regex.groupindex:
            raise InputError(
                f"host_pattern: {self.host_pattern!r} has no group (?P<host>…)",
                remedy="mark the part that is the host's name",
            )
        return regex

    def __call__(self, description: str) -> HostPort:
        """The host, HCA and kind of an HCA with this description."""
        text = description.strip()
        if matches(text, AGGREGATION_NODES):
            return HostPort(None, "", Kind.IN_SWITCH)
        match = None if self._without_host(text) else self._regex.fullmatch(text)
        if not match or not match["host"]:
            return HostPort(None, "", Kind.COMPUTE)
        host = match["host"]
        if self.short_names and (short := _first_part(host)).lower() not in self.long:
            host = short
        name = self._slurm.of(host)
        kind = min(self.kind(host), self.kind(name), key=_KINDS.index)
        return HostPort(name, match.groupdict().get("hca") or "", kind)

    def _without_host(self, text: str) -> bool:
        return text in self.nameless or matches(text, self.vendor_names)

    def among(self, nodes: Iterable[tuple[int, str]]) -> tuple[HostMapper, list[str]]:
        """This mapper for a fabric whose channel adapters have these GUIDs and descriptions, and a
        sentence on what only all of them together show: descriptions that no host's name can be in,
        since they are of many machines, and short names of hosts of several domains."""
        times = Counter(text.strip() for _, text in dict.fromkeys(nodes))
        nameless = {
            text for text, count in times.items() if count >= MANY and self._of_many(text, count)
        }
        of_short: dict[str, set[str]] = {}
        if self.short_names:
            for text in times:
                if "." in text and not self._without_host(text) and text not in nameless:
                    match = self._regex.fullmatch(text)
                    if match and match["host"] and _first_part(match["host"]) != match["host"]:
                        short = _first_part(match["host"]).lower()
                        of_short.setdefault(short, set()).add(match["host"].lower())
        long = {short: sorted(names) for short, names in of_short.items() if len(names) > 1}
        notes = []
        if nameless:
            which = ", ".join(f'"{text}" ({times[text]})' for text in sorted(nameless)[:4])
            notes.append(
                f"descriptions of many HCAs are no hosts' names: {which}"
                f"{', …' if len(nameless) > 4 else ''}; each of these is a host of its own"
            )
        if long:
            short, names = min(long.items())
            notes.append(
                f"{plural(len(long), 'short name is', 'short names are')} of hosts of several "
                f"domains, which keep their full names: {short} of {', '.join(names[:3])}"
            )
        found = replace(self, long=frozenset(long), nameless=frozenset(nameless))
        return (found if notes else self), notes

    def _of_many(self, text: str, count: int) -> bool:
        """Whether a description of so many nodes can be no host's."""
        host, hca, _ = self(text)
        return host is not None and bool(hca or count > MOST_HCAS or not re.search(r"[0-9]", host))

    def kind(self, host: str) -> Kind:
        """The kind of a host, by the configured patterns."""
        if matches_host(host, self.storage_hosts):
            return Kind.STORAGE
        return Kind.OTHER if matches_host(host, self.other_hosts) else Kind.COMPUTE

    def used_by_jobs(self, hca: str, port: int) -> bool:
        """Whether jobs use this port of an HCA; an HCA without a name is matched by `/1`, `/2`."""
        chosen = [part for pattern in self.job_hcas for part in between_commas(pattern)]
        return not chosen or matches(hca, chosen) or matches(f"{hca}/{port}", chosen)


_KINDS = (Kind.STORAGE, Kind.OTHER, Kind.COMPUTE)
"""The first of a host's two names that a pattern fits decides."""


def _first_part(host: str) -> str:
    """`n001` of `n001.cluster.org`; an address stays whole."""
    return host if re.fullmatch(r"[\d.]+", host) else host.split(".")[0] or host


def hca_order(hca: str) -> list[str | tuple[int, str]]:
    """A sorting key that puts `mlx5_2` before `mlx5_10`, for numbers of any length."""
    parts = enumerate(re.split(r"([0-9]+)", hca))
    return [_number(part) if place % 2 else part for place, part in parts]


def _number(digits: str) -> tuple[int, str]:
    """A key in the order of the numbers, which may have any length."""
    digits = digits.lstrip("0")
    return len(digits), digits


def name_port(
    mapper: HostMapper, letter: str, guid: int, description: str, port: int
) -> NamedTerminal:
    """The host, HCA and kind of port number `port` of a node. `letter` is the node's type, H or R;
    a node without a usable description is a host of its own, named by its GUID."""
    host, hca, kind = mapper(description)
    if letter == "R":
        kind = Kind.OTHER
    if host is None:
        host = f"{letter}-{guid:016x}"
        kind = mapper.kind(host) if kind == Kind.COMPUTE else kind
    if kind == Kind.COMPUTE and not mapper.used_by_jobs(hca, port):
        kind = Kind.OTHER
    return NamedTerminal(host, hca, kind)
