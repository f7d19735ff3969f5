"""How Slurm calls a node, where the fabric calls it otherwise: `SLURM=FABRIC`.

Case, domains and `-ib0` need no such pair (`by_host.py`). Both sides are lists of as many names,
`node[001-144]=c[1-144]`, or have one `*` each, which stands for the same text: `node*=ib-*`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sar_agent.errors import InputError
from sar_agent.util.hostlist import expand_few

_REMEDY = "write SLURM=FABRIC, such as node[001-144]=c[1-144] or node*=ib-*"
MOST_NAMES = 100_000


class SlurmNames:
    """The look-up of these pairs. Raises `InputError` for a text that is no such pair."""

    def __init__(self, pairs: Sequence[str]) -> None:
        self._names: dict[str, str] = {}
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        for pair in pairs:
            slurm, equals, fabric = (part.strip() for part in pair.partition("="))
            if not (slurm and equals and fabric) or "=" in fabric:
                raise InputError(f"slurm_names: {pair!r} is no pair", remedy=_REMEDY)
            if "*" in pair:
                self._add_pattern(pair, slurm, fabric)
            else:
                self._add_lists(pair, slurm, fabric)

    def _add_pattern(self, pair: str, slurm: str, fabric: str) -> None:
        if slurm.count("*") != 1 or fabric.count("*") != 1:
            raise InputError(
                f"slurm_names: {pair!r} does not have one * on each side", remedy=_REMEDY
            )
        before, after = map(re.escape, fabric.split("*"))
        self._patterns.append((re.compile(f"{before}(.+){after}", re.IGNORECASE), slurm))

    def _add_lists(self, pair: str, slurm: str, fabric: str) -> None:
        try:
            sides = [expand_few(side, MOST_NAMES) for side in (slurm, fabric)]
        except InputError as error:
            raise InputError(f"slurm_names: {error.what}", remedy=_REMEDY) from error
        if len(sides[0]) != len(sides[1]):
            raise InputError(
                f"slurm_names: {pair!r} has {len(sides[0])} names for {len(sides[1])}",
                remedy=_REMEDY,
            )
        for name, host in zip(*sides, strict=True):
            self._names.setdefault(host.lower(), name)

    def fits(self, host: str) -> bool:
        """Whether a pair is about this host of the fabric."""
        return host.lower() in self._names or any(
            regex.fullmatch(host) for regex, _ in self._patterns
        )

    def of(self, host: str) -> str:
        """Slurm's name of a host of the fabric; the same name where no pair fits."""
        if (name := self._names.get(host.lower())) is not None:
            return name
        for regex, slurm in self._patterns:
            if match := regex.fullmatch(host):
                return slurm.replace("*", match[1])
        return host
