"""What is proved step by step equals what is proved at once, over random histories."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_changed, check_routes, proof
from sar_agent.check.proof import prove, prove_change
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Routes
from tests.examples import examples
from tests.property.histories import SHAPES, history
from tests.property.networks import networks

Shape = tuple[int, int]
Network = tuple[Fabric, JobMix]


@examples(60)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_the_verdict_of_a_change_is_that_of_the_whole(
    network: Network, random: Random, of: Shape
) -> None:
    before = None
    for fabric, routes in history(network[0], random, 8, of):
        verdict, proved = check_changed(fabric, routes, before)
        assert verdict == check_routes(fabric, routes)
        assert (proved is not None) == verdict.passed
        before = proved or before


@pytest.mark.parametrize("few", [0, 1, 99])
@pytest.mark.parametrize("many", [0, proof.MANY])
@examples(30)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_dependencies_are_counted_exactly(
    many: int, few: int, network: Network, random: Random, of: Shape
) -> None:
    """Also where two processors count half of the trees each."""
    before = None
    for fabric, routes in history(network[0], random, 8, of):
        whole = prove(fabric, routes)
        with patch.object(proof, "MANY", many):
            halves = prove(fabric, routes)
            step = prove_change(before, fabric, routes, few) if before else whole
        assert bool(whole) == bool(halves)
        assert whole or not step
        if whole and halves:
            assert np.array_equal(halves.counts, whole.counts)
        if step and whole:
            assert np.array_equal(step.counts, whole.counts)
        before = step or before


@examples(40)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_traffic_after_a_change_is_bit_for_bit_that_of_the_whole(
    network: Network, random: Random, of: Shape
) -> None:
    jobs, traffic = network[1].jobs, None
    for fabric, routes in history(network[0], random, 8, of):
        some = [job for job in jobs if random.random() < 0.8]
        if some and random.random() < 0.3:
            some[0] = make_job("heavy", some[0].terminals, weight=random.random())
        mix = JobMix.of(some)
        traffic, whole = traffic_of(fabric, mix, routes, traffic), traffic_of(fabric, mix, routes)
        for name in ("efi", "load", "job_efi", "job_load", "job_links", "job_switches"):
            assert getattr(traffic, name).tobytes() == getattr(whole, name).tobytes(), name
        assert traffic.efi.tolist() == counted(fabric, mix, routes)


def counted(fabric: Fabric, mix: JobMix, routes: Routes) -> list[int]:
    """Effective EFI pair by pair, as far as packets come in tables that may be broken."""
    found = [0] * fabric.channels
    for job in mix.jobs:
        for source in job.terminals:
            for destination in job.terminals:
                v, root = int(fabric.terminal_switch[source]), fabric.terminal_switch[destination]
                for _ in range(fabric.switches):
                    c = int(fabric.channel_by_port[v, routes.egress[0, destination, v]])
                    if v == root or c < 0:
                        break
                    found[c] += 1
                    v = int(fabric.channel_target[c])
    return found
