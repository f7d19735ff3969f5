"""Oblivious routing of XGFTs (Rodriguez et al., 2009): the parent follows from labels or is random.

`smodk`    hop l goes to parent M_l mod w_{l+1} of the source's label (Section V)
`random`   a random root for each pair
`rnca-d`   the same with the destination's (`dmodk`), scrambled subtree by subtree (Section VIII)
`rnca-u`   as smodk, with such labels

In each subtree of height l, scrambling maps the m_l children to the w_{l+1} parents at random but
evenly: the counts of two parents differ by one child at most. That breaks the regularity that
programs' patterns share with a modulo, and still routes all traffic of a host one way. O(T S).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U64
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.routing.dmodk import DModK, modulo_labels
from sar_agent.routing.engine import Options
from sar_lab.fluid.path_routes import ParentChoice, PathRoutes
from sar_lab.research.engines.by_source import BySource


class RncaD(DModK):
    """The parent follows from the destination's scrambled label."""

    name = "rnca-d"
    summary = "XGFTs: as dmodk on scrambled labels, --seed (oblivious-xgft-2009, VIII)"

    def labels(self, fabric: Fabric, view: XgftView, seed: int) -> U8:
        return scrambled_labels(fabric, view, seed)


class _ByLabel(BySource):
    """The parent follows from labels, or is random."""

    one_root_per_source = True

    @abstractmethod
    def choice(self, fabric: Fabric, view: XgftView, seed: int) -> ParentChoice:
        """The function for `PathRoutes.choose`."""

    def paths(self, fabric: Fabric, mix: JobMix, options: Options) -> PathRoutes:
        """Raises `Unserved` where the fabric is no XGFT."""
        view = recognise_xgft(fabric)
        choose = self.choice(fabric, view, options.seed)
        return PathRoutes(self.name, fabric, view, choose, self.one_root_per_source)


class SModK(_ByLabel):
    """The parent follows from the source's label."""

    name = "smodk"
    summary = "XGFTs: the way up by the source's label; needs LMC (oblivious-xgft-2009, V)"

    def choice(self, fabric: Fabric, view: XgftView, seed: int) -> ParentChoice:
        labels = modulo_labels(view)
        return lambda source, destination: labels[source]


class RncaU(_ByLabel):
    """The parent follows from the source's scrambled label."""

    name = "rnca-u"
    summary = "XGFTs: as smodk on scrambled labels, --seed; needs LMC (oblivious-xgft-2009, VIII)"

    def choice(self, fabric: Fabric, view: XgftView, seed: int) -> ParentChoice:
        labels = scrambled_labels(fabric, view, seed)
        return lambda source, destination: labels[source]


class Random(_ByLabel):
    """A random root for each pair."""

    name = "random"
    summary = "XGFTs: any root for each pair, --seed; needs LMC (oblivious-xgft-2009, V)"
    one_root_per_source = False

    def choice(self, fabric: Fabric, view: XgftView, seed: int) -> ParentChoice:
        rank = np.argsort(np.argsort(fabric.terminal_guid)).astype(np.uint64)

        def choose(source: I32, destination: I32) -> U8:
            pair = (rank[source] << np.uint64(32)) | rank[destination]
            return np.stack(
                [
                    (_mixed(pair, seed * 64 + level) % np.uint64(w)).astype(np.uint8)
                    for level, w in enumerate(view.w[1:])
                ]
                or [np.empty((0, len(source)), np.uint8)],
                axis=1,
            ).reshape(len(source), -1)

        return choose


def scrambled_labels(fabric: Fabric, view: XgftView, seed: int) -> U8:
    """uint8[T, h - 1]: for each subtree of height l, its children's even random parents."""
    random = np.random.default_rng(seed)
    labels = np.zeros((fabric.terminals, view.height - 1), np.uint8)
    for level in range(1, view.height):
        subtree = view.inside[level, fabric.terminal_switch]
        subtrees = int(view.inside[level].max()) + 1
        m, w = view.m[level - 1], view.w[level]
        # Each row a shuffled 0, 1, …, w - 1, 0, 1, …, from a random start.
        even = (np.arange(m) + random.integers(0, w, (subtrees, 1))) % w
        parents = random.permuted(even, axis=1)
        labels[:, level - 1] = parents[subtree, view.digit[:, level - 1]]
    return labels


def _mixed(value: U64, salt: int) -> U64:
    """SplitMix64's finish: every bit of the value moves every bit of the result."""
    with np.errstate(over="ignore"):
        value = value + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) & 0xFFFFFFFFFFFFFFFF)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: U64 = value ^ (value >> np.uint64(31))
    return mixed
