"""Cases of the check that random histories hardly ever contain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.check import check_and_prove, check_routes
from sar_agent.check.transition import Way, examine
from sar_agent.errors import InputError
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.install.plan import make_plan
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from tests.worlds.grids import routes_by, torus
from tests.worlds.rings import around, ring


def test_tables_whose_mixture_alone_closes_a_credit_loop() -> None:
    fabric = ring()
    old, new, mixed = (around(fabric, ports) for ports in ([1, 4, 4], [2, 3, 4], [1, 3, 4]))
    assert check_routes(fabric, old).passed and check_routes(fabric, new).passed
    assert not check_routes(fabric, mixed).deadlock_free, "switch 1 has the new one, 0 the old"
    found = examine(fabric, old, new)
    assert found.way is Way.STAGED and len(found.stages) == 2 and found.proved
    assert found.words.startswith("safe in 2 stages; at once, a credit loop in lane 0: ")
    assert '"s0"[1] -> "s1"[1] (to h2, old entry), "s1"[3] -> "s2"[1] (to h0' in found.danger
    assert examine(fabric, old, old).way is Way.SAME
    assert examine(fabric, old, new, most_stages=1).way is Way.UNSAFE
    broken = examine(fabric, mixed, new)
    assert broken.way is Way.UNPROVED and not broken.proved
    assert broken.words.startswith("not proved, because the routes in force are unsafe already: a ")


@pytest.mark.parametrize(
    ("port", "fault"),
    [
        (255, "no route"),
        (7, "a port without a live link"),
        (1, "a loop"),
        (3, "the wrong last port"),
    ],
)
def test_the_first_pair_that_does_not_reach_is_explained(port: int, fault: str) -> None:
    fabric = ring()
    routes = around(fabric, [1, 4, 4])
    routes.egress[0, 2, 2 if fault == "the wrong last port" else 1] = port
    verdict = check_routes(fabric, routes)
    broken = 3 if fault == "the wrong last port" else 2
    assert verdict.problems == (
        f'{broken} pairs do not reach; the first is from switch "s0" to "h2 HCA-1" (h2): {fault}',
    )


def test_packets_that_a_new_entry_leads_into_an_old_hole() -> None:
    """Switch 1 has no route to h2 yet, and switch 0 is to send through it: 1 must change first."""
    fabric = ring()
    old, new = around(fabric, [3, 255, 4]), around(fabric, [1, 4, 4])
    found = examine(fabric, old, new)
    assert found.way is Way.STAGED
    assert [stage.egress[0, 2].tolist() for stage in found.stages] == [[3, 4, 4], [1, 4, 4]]
    assert found.danger == (
        'packets to h2 (port 0xc) could be lost: "s0" -> "s1" (new entry), where the old entry of '
        '"s1" leads nowhere'
    )


def test_a_switch_that_comes_back_is_asked_for_everything() -> None:
    whole = xgft_fabric("xgft:2;4,4;1,2")
    cut, spine = whole.with_switches_down([4]), 4
    mix, engine = JobMix(()), load_engine("minhop")
    routes = engine.route(cut, mix, Options())
    assert check_and_prove(cut, routes).proved
    own = whole.terminals + spine
    routes.egress[0, own] = engine.route(whole, mix, Options()).egress[0, own]
    assert (routes.egress[0, : whole.terminals, spine] == 255).all()
    verdict, proved = check_and_prove(whole, routes)
    assert proved is None
    assert verdict.unreachable_pairs >= whole.terminals


@pytest.mark.parametrize("name", ["egress", "service_level", "hop_lane", "senders"])
def test_arrays_that_do_not_fit_never_reach_a_kernel(name: str) -> None:
    """Kernels read past their ends."""
    fabric = ring()
    routes = around(fabric, [1, 4, 4])
    wrong = {
        "egress": routes.egress.astype(np.uint16),
        "service_level": np.zeros((1, 2, 3), np.uint8),
        "hop_lane": np.zeros((2, 5, 5), np.uint8),
        "senders": np.zeros(2, np.bool_),
    }
    with pytest.raises(InputError, match=f"{name} do not fit tables of 6 destinations"):
        replace(routes, **{name: wrong[name]})
    other = replace(routes, egress=routes.egress[:, :, :2])
    for read in (check_routes, lambda fabric, routes: make_plan(1, fabric, JobMix(()), routes)):
        with pytest.raises(InputError, match="do not fit"):
            read(fabric, other)


@pytest.mark.parametrize(("hosts", "free"), [((0, 3), True), ((0, 2, 4), False)])
def test_clockwise_around_a_ring_of_which_some_switches_have_hosts(
    hosts: tuple[int, ...], free: bool
) -> None:
    """Packets hold channels at switches that they only pass. Two hosts opposite each other close
    no loop; their packets to the switches themselves would."""
    ring = torus((6,))
    fabric = ring.with_links_down([], [t for t in range(6) if t not in hosts])
    verdict = check_routes(fabric, routes_by(fabric, lambda here, there: (here + 1) % 6))
    assert (verdict.deadlock_free, verdict.deadlock_free_everyone) == (free, False)
    assert free or "credit loop in virtual lane 0" in verdict.problems[0]
