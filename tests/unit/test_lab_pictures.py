"""The papers' pictures from made-up numbers: every point, interval and published mark is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from sar_lab.papers import (
    keys_curves,
    oblivious_fig4,
    pftree_fig10,
    pftree_fig11,
    pftree_table4,
    receivers,
    routing_keys_fig4,
    sar_fig8,
)
from sar_lab.papers.keys_runs import ENGINES as KEY_ENGINES
from sar_lab.papers.pftree_delays import ENGINES, PATTERNS, Delays
from sar_lab.papers.pftree_trees import TREES
from sar_lab.papers.pictures import save
from sar_lab.papers.receivers import MeanAndRange
from sar_lab.statistics import Estimate, median_of


def estimate(value: float) -> Estimate:
    """Six draws about a value."""
    return median_of(value * np.linspace(0.9, 1.1, 6))


def drawn(draw: Callable[[Figure], None], path: Path) -> Figure:
    """The figure that was saved."""
    figures: list[Figure] = []

    def keep(figure: Figure) -> None:
        figures.append(figure)
        draw(figure)

    assert save(keep, path, (9.0, 5.0)) and path.stat().st_size > 5000
    return figures[0]


def labels(figure: Figure) -> set[str]:
    """All words of legends."""
    found = [axes.get_legend_handles_labels()[1] for axes in figure.axes]
    return {label for some in found for label in some}


def test_keys_curves_show_times_and_paired_ratios(tmp_path: Path) -> None:
    times = {
        engine: {x: [place + x + 0.1 * seed for seed in range(6)] for x in (0.1, 0.5)}
        for place, engine in enumerate(reversed(KEY_ENGINES), 1)
    }
    panels = {"2 applications": times, "8 applications": times}
    published = {"2 applications": (0.1, 2.7)}
    figure = drawn(
        lambda f: keys_curves.draw(f, panels, "utilization", published=published),
        tmp_path / "keys.png",
    )
    assert len(figure.axes) == 4 and figure.axes[0].get_title() == "2 applications, n = 6"
    below = figure.axes[2]
    [mark] = [line for line in below.lines if line.get_label() == "published"]
    assert np.ravel(mark.get_ydata()).tolist() == [2.7]
    [conga] = [line for line in below.lines if line.get_label() == "Conga-like"]
    want = keys_curves.ratio(times, "conga", "nrk", 0.5).value
    assert np.ravel(conga.get_ydata())[1] == pytest.approx(want)


def test_delays_show_intervals_and_the_published_delays(tmp_path: Path) -> None:
    some = {
        (pattern, tree.nodes, engine, noise): Delays(1, estimate(tree.nodes), 3 * tree.nodes, ())
        for pattern in PATTERNS
        for tree in TREES
        for engine in ENGINES
        for noise in pftree_fig10.NOISES
    }
    figure = drawn(lambda f: pftree_fig10._draw(f, some), tmp_path / "fig10.png")
    assert {"published, pFTree, noise", "published, pFTree, no noise"} <= labels(figure)
    table = {key[:3]: value for key, value in some.items() if key[3] == "alltoall"}
    drawn(lambda f: pftree_table4._draw(f, table), tmp_path / "table4.png")


def test_bandwidths_show_the_published_ones(tmp_path: Path) -> None:
    some = {(e, t.nodes): estimate(0.5) for e in pftree_fig11.ENGINES for t in TREES}
    figure = drawn(lambda f: pftree_fig11._draw(f, some), tmp_path / "fig11.png")
    assert "published, pFTree" in labels(figure)


def test_contention_shows_nought_and_thousands(tmp_path: Path) -> None:
    some = {
        (engine, tree.nodes): MeanAndRange(0.0, place * tree.nodes, 4.0 * place * tree.nodes)
        for place, engine in enumerate(receivers.ENGINES)
        for tree in TREES
    }
    printed = {("pftree-printed", 32): 2.0}
    result = receivers.panels_outcome(
        tmp_path / "fig13.png", [], "made up", [("down", some, "total contention down", printed)]
    )
    assert result.picture and result.picture.stat().st_size > 5000


def test_means_of_contention_have_their_intervals(tmp_path: Path) -> None:
    some = {
        e: [estimate(1.0 + n) for n, _ in enumerate(routing_keys_fig4.SIDES)]
        for e in routing_keys_fig4.ENGINES
    }
    figure = drawn(lambda f: routing_keys_fig4._draw(f, some), tmp_path / "fig4.png")
    assert labels(figure) == {"D-mod-k", "ARK", "NRK"}


def test_roots_are_shown_one_by_one(tmp_path: Path) -> None:
    counts = {
        (name, roots): [np.full(roots, 3840) + k for k in range(1 if name[1:] == "modk" else 3)]
        for name in oblivious_fig4.ENGINES
        for roots in (16, 10)
    }
    figure = drawn(lambda f: oblivious_fig4._draw(f, counts), tmp_path / "fig4.png")
    assert len(figure.axes) == 10 and "published" in labels(figure)
    assert [len(axes.patches) for axes in figure.axes] == [16] * 5 + [10] * 5
    assert figure.axes[2].get_title() == "Random, 16 roots,\nn = 3"


def test_times_are_shown_beside_the_published_ratios(tmp_path: Path) -> None:
    times = {
        (name, pattern): [1.0 + place + 0.1 * seed for seed in range(6)]
        for place, name in enumerate(sar_fig8._LABELS)
        for pattern in sar_fig8._SHOWN
    }
    figure = drawn(lambda f: sar_fig8._draw(f, times), tmp_path / "fig8.png")
    [mark] = [line for line in figure.axes[2].lines if line.get_label() == "published"]
    assert np.ravel(mark.get_ydata()).tolist() == pytest.approx([1.214, 1.133])
    assert np.ravel(mark.get_xdata()).tolist() == [1, 0] and "n = 6" in figure.axes[0].get_title()
