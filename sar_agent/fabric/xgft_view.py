"""Recognises extended generalized fat trees from cabling alone (oblivious-xgft-2009, Section II).

Names and port numbers are not used: a tree that was cabled by hand is recognised like a generated
one. A switch's subtrees determine its digits M, and its parents its digits W: from the top down,
switches of one level whose parents are in the same *planes* form a plane, which the digits W_l …
W_1 name. The tree must be complete, with every cable once; a tree with a broken cable is not an
XGFT, and the error names the switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric.components import components_below
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import I32, U8, Fabric
from sar_agent.fabric.tree import tree_levels
from sar_agent.util.plural import plural

_ELSE = "take ftree, updn or sar-plus"


@dataclass(frozen=True, eq=False)
class XgftView:
    """XGFT(h; m; w) with w1 = 1 over the indices of a fabric; levels are 1 (leaves) … h."""

    m: tuple[int, ...]
    """A switch of level l has m[l - 1] children (m[0] is the largest number of hosts of a leaf)."""
    w: tuple[int, ...]
    """A switch of level l has w[l] parents; w[0] = 1."""
    level: U8
    """uint8[S], 1 … h."""
    subtree: I32
    """int32[S]: the number of the subtree of height `level` of which the switch is a root."""
    inside: I32
    """int32[h + 1, S]: by height, the subtree that contains a leaf switch; -1 for others."""
    digit: I32
    """int32[T, h]: M_1 … M_h of each terminal; M_1 numbers the hosts of a leaf by port."""
    up: U8
    """uint8[S, largest w]: egress port to the parent with W = j; 0 where there is no such
    parent."""
    down: U8
    """uint8[S, largest m]: egress port to child j; 0 at leaves and where there is no such child."""

    @property
    def height(self) -> int:
        return len(self.m)

    @property
    def ncas(self) -> int:
        """The number of roots of the whole tree (nearest common ancestors of the farthest
        hosts)."""
        return prod(self.w)


def recognise_xgft(fabric: Fabric) -> XgftView:
    """The labels of all nodes. Raises `Unserved` with the first switch that does not fit."""
    level = tree_levels(fabric) + np.uint8(1)
    height = int(level.max(initial=1))
    if (fabric.terminals_at[level > 1] > 0).any():
        at = int(np.flatnonzero((level > 1) & (fabric.terminals_at > 0))[0])
        raise _unlike(fabric, at, "has hosts though it is above leaf switches")
    parents, children = _neighbours(fabric, level)
    m, w = _shape(fabric, level, parents, children)
    planes = _planes(fabric, level, parents, w)
    inside = _subtrees(fabric, level, height)
    subtree = inside[level, np.arange(fabric.switches)]
    up = np.zeros((fabric.switches, max(w)), np.uint8)
    digits = _plane_digits(level, parents, planes)
    for s, above in enumerate(parents):
        for port, parent in above:
            up[s, digits[int(level[parent]), planes[parent]]] = port
    down = np.zeros((fabric.switches, max(m)), np.uint8)
    child_digit = _child_digits(level, inside)
    for s, below in enumerate(children):
        for port, child in below:
            down[s, child_digit[int(level[child])][subtree[child]]] = port
    _one_each(fabric, level, subtree, planes)
    digit = _terminal_digits(fabric, inside, child_digit)
    below_leaf = max(1, int(digit[:, 0].max(initial=0)) + 1)
    whole = np.where(level == 1, inside, -1).astype(np.int32)
    return XgftView((below_leaf, *m[1:]), w, level, subtree, whole, digit, up, down)


_Near = list[list[tuple[int, int]]]
"""For each switch: (egress port, neighbour), in the order of ports."""


def _neighbours(fabric: Fabric, level: U8) -> tuple[_Near, _Near]:
    parents: _Near = [[] for _ in range(fabric.switches)]
    children: _Near = [[] for _ in range(fabric.switches)]
    for c in range(fabric.channels):
        s, t = int(fabric.channel_source[c]), int(fabric.channel_target[c])
        if not fabric.channel_up[c]:
            raise _unlike(fabric, s, f"has a cable that is down, {fabric.channel_name(c)}")
        near = parents[s] if level[t] > level[s] else children[s]
        if any(t == other for _, other in near):
            raise _unlike(fabric, s, f'has several cables to "{fabric.switch_name[t]}"')
        near.append((int(fabric.channel_port[c]), t))
    return parents, children


def _shape(
    fabric: Fabric, level: U8, parents: _Near, children: _Near
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(m, w) without the hosts: the counts that most switches of each level have. Raises `Unserved`
    for a switch with another count."""
    height = int(level.max())

    def all_alike(at: int, near: _Near, what: str) -> int:
        switches = np.flatnonzero(level == at).tolist()
        usual = int(np.bincount([len(near[s]) for s in switches]).argmax())
        for s in switches:
            if len(near[s]) != usual:
                raise _unlike(
                    fabric,
                    s,
                    f"has {plural(len(near[s]), 'switch', 'switches')} {what}, others {usual}",
                )
        return usual

    m = (1, *(all_alike(at, children, "below") for at in range(2, height + 1)))
    w = (1, *(all_alike(at, parents, "above") for at in range(1, height)))
    return m, w


def _planes(fabric: Fabric, level: U8, parents: _Near, w: tuple[int, ...]) -> list[int]:
    """For each switch: the number of its plane among those of its level."""
    plane = [0] * fabric.switches
    height = int(level.max())
    top = np.flatnonzero(level == height)
    for number, s in enumerate(top.tolist()):
        plane[s] = number
    for at in range(height - 1, 0, -1):
        known: dict[frozenset[int], int] = {}
        for s in np.flatnonzero(level == at).tolist():
            above = frozenset(plane[t] for _, t in parents[s])
            if len(above) != w[at]:
                raise _unlike(fabric, s, "has two parents in one plane")
            plane[s] = known.setdefault(above, len(known))
        if len(known) != prod(w[:at]):
            s = int(np.flatnonzero(level == at)[0])
            raise _unlike(fabric, s, f"is of one of {len(known)} planes; {prod(w[:at])} are right")
    return plane


def _plane_digits(level: U8, parents: _Near, planes: list[int]) -> dict[tuple[int, int], int]:
    """(level, plane) → W of that level: by the port of the first switch of the plane below."""
    digits: dict[tuple[int, int], int] = {}
    seen: set[tuple[int, int]] = set()
    for s in np.argsort(level, kind="stable").tolist():
        here = int(level[s]), planes[s]
        if here not in seen:
            seen.add(here)
            for j, (_, parent) in enumerate(parents[s]):
                digits.setdefault((here[0] + 1, planes[parent]), j)
    return digits


def _subtrees(fabric: Fabric, level: U8, height: int) -> I32:
    """int32[h + 1, S]: by height, the subtree of each switch of that level or below, numbered by
    the lowest GUID of its leaves; -1 for switches above."""
    subtree = np.full((height + 1, fabric.switches), -1, np.int32)
    rank = np.full(fabric.switches, fabric.switches)
    leaves = np.flatnonzero(level == 1)
    rank[leaves] = np.argsort(np.argsort(fabric.switch_guid[leaves]))
    for at in range(1, height + 1):
        low, part = level <= at, components_below(fabric, level, at)
        lowest = rank.copy()
        np.minimum.at(lowest, part, rank)
        subtree[at, low] = np.unique(lowest[part[low]], return_inverse=True)[1]
    return subtree


def _child_digits(level: U8, inside: I32) -> list[I32]:
    """By height, for each subtree: M of the level above, its index among its siblings."""
    digits = [np.zeros(0, np.int32)]
    leaves = inside[:, level == 1]
    for at in range(1, len(inside) - 1):
        whole, part = np.unique(leaves[[at + 1, at]], axis=1)
        digit = np.zeros(len(part), np.int32)
        digit[part] = np.arange(len(part)) - np.searchsorted(whole, whole)
        digits.append(digit)
    return digits


def _one_each(fabric: Fabric, level: U8, subtree: I32, planes: list[int]) -> None:
    seen: dict[tuple[int, int, int], int] = {}
    for s in range(fabric.switches):
        key = int(level[s]), int(subtree[s]), planes[s]
        if key in seen:
            other = fabric.switch_name[seen[key]]
            raise _unlike(fabric, s, f'has the same place as "{other}"')
        seen[key] = s


def _terminal_digits(fabric: Fabric, inside: I32, child_digit: list[I32]) -> I32:
    digit = np.zeros((fabric.terminals, len(child_digit)), np.int32)
    hosts = np.flatnonzero(fabric.terminal_kind != Kind.IN_SWITCH)
    order = hosts[np.lexsort((fabric.terminal_switch_port[hosts], fabric.terminal_switch[hosts]))]
    leaf = fabric.terminal_switch[order]
    digit[order, 0] = np.arange(len(order)) - np.searchsorted(leaf, leaf)
    for at in range(1, len(child_digit)):
        part = inside[at, fabric.terminal_switch]
        digit[:, at] = np.where(part >= 0, child_digit[at][part], 0)
    return digit


def _unlike(fabric: Fabric, switch: int, what: str) -> Unserved:
    return Unserved(
        f'{fabric.name} is not an XGFT: switch "{fabric.switch_name[switch]}" {what}; {_ELSE}'
    )
