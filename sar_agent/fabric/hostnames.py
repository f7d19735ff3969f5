"""Maps node descriptions to host names: `n001 HCA-1` is port `HCA-1` of Slurm's `n001`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from sar_agent.errors import InputError
from sar_agent.fabric.name_patterns import between_commas, matches, matches_host

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
    "ubuntu",
    "ubuntu *",
    "debian",
    "debian *",
)
"""Descriptions by firmware or an unconfigured system: they contain no host's name."""

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
    job_hcas: tuple[str, ...] = ()
    """Patterns of the HCAs (`mlx5_[0-11]`) or HCA ports (`mlx5_0/1`) that jobs use; empty: all."""
    traffic: str = ""
    """Whom a job's port sends to: `rail`, to the same port of the other hosts; `alltoall`, to all
    ports; empty: as the cabling shows (`demand/rails.py`)."""

    def __post_init__(self) -> None:
        # Configuration files give lists; a frozen, hashable object needs tuples.
        for key in ("vendor_names", "storage_hosts", "other_hosts", "job_hcas"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        if self.traffic not in ("", "rail", "alltoall"):
            raise InputError(
                f"traffic: {self.traffic!r} is neither rail nor alltoall",
                remedy="leave it out: then it is as the cabling shows",
            )
        _ = self._regex

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
        match = None if matches(text, self.vendor_names) else self._regex.fullmatch(text)
        if not match or not match["host"]:
            return HostPort(None, "", Kind.COMPUTE)
        host = match["host"]
        if self.short_names and not re.fullmatch(r"[\d.]+", host):  # an address is not an FQDN
            host = host.split(".")[0] or host
        return HostPort(host, match.groupdict().get("hca") or "", self.kind(host))

    def kind(self, host: str) -> Kind:
        """The kind of a host, by the configured patterns."""
        if matches_host(host, self.storage_hosts):
            return Kind.STORAGE
        return Kind.OTHER if matches_host(host, self.other_hosts) else Kind.COMPUTE

    def used_by_jobs(self, hca: str, port: int) -> bool:
        """Whether jobs use this port of an HCA; an HCA without a name is matched by `/1`, `/2`."""
        chosen = [part for pattern in self.job_hcas for part in between_commas(pattern)]
        return not chosen or matches(hca, chosen) or matches(f"{hca}/{port}", chosen)


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
