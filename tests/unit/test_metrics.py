"""The metrics as Prometheus reads them."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import pytest

import sar_agent
from sar_agent.agent.update_strategy import UpdateMethod
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import Unavailable
from sar_agent.events.message import RefusalReason
from sar_agent.fabric.spec import load_fabric
from sar_agent.quality import Measures, measure
from sar_agent.routing import Options, load_engine
from sar_agent.telemetry.metrics import ERROR_PLACES, STAGES, UPDATE_METHODS, Metrics
from sar_lab.live.process import free_port


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("0.1.0", "install", "sar")


@pytest.fixture(scope="module")
def measures() -> Measures:
    fabric = load_fabric("xgft:2;4,4;1,2")
    mix = synthetic_mix(fabric, 1)
    return measure(fabric, mix, load_engine("sar").route(fabric, mix, Options()))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_measures_appear_and_go(metrics: Metrics, measures: Measures) -> None:
    metrics.show_measures("planned", measures)
    assert (
        value(metrics, "sar_agent_dark_fiber_ratio", routes="planned") == measures.dark_fiber_ratio
    )
    assert value(metrics, "sar_agent_dark_fiber_ratio", routes="in_force") is None
    assert value(metrics, "sar_agent_job_links_count", routes="planned") == measures.jobs > 0
    expected = sum(job.links for job in measures.jobs_detail)
    assert value(metrics, "sar_agent_job_links_sum", routes="planned") == expected
    own = sum(job.efi_own_max for job in measures.jobs_detail)
    assert value(metrics, "sar_agent_job_own_routes_max_sum", routes="planned") == own > 0
    metrics.show_measures("planned", None)
    metrics.show_measures("planned", None)
    for name in (
        "sar_agent_dark_fiber_ratio",
        "sar_agent_job_links_count",
        "sar_agent_job_own_routes_max_count",
        "sar_agent_effective_efi_max",
    ):
        assert value(metrics, name, routes="planned") is None


def test_labels_that_are_listed_here_are_those_of_the_code() -> None:
    """Types above telemetry cannot be imported there: their values are compared here."""
    code = "\n".join(path.read_text() for path in Path(sar_agent.__file__).parent.rglob("*.py"))
    stages = re.findall(r'\b(?:timed|stage)\("(\w+)"\)', code)
    assert len(stages) > 8 and set(stages) <= set(STAGES)
    places = re.findall(r'(?:guard|caught)\(\s*"([\w ]+)"', code)
    assert len(places) > 6 and set(places) <= set(ERROR_PLACES)
    idle = UpdateMethod.WAIT, UpdateMethod.REFUSE
    assert set(UPDATE_METHODS) == {how.value for how in UpdateMethod if how not in idle} | {"none"}


def test_each_reason_to_refuse_a_message_has_its_series_from_the_start(metrics: Metrics) -> None:
    for reason in RefusalReason:
        assert value(metrics, "sar_agent_events_refused_total", reason=reason.value) == 0
    assert value(metrics, "sar_agent_events_total", event="start", transport="tcp") is None
    metrics.expect_messages(["start"])
    assert value(metrics, "sar_agent_events_total", event="start", transport="tcp") == 0


def test_served_on_the_address_and_a_taken_port_is_one_sentence(metrics: Metrics) -> None:
    port = free_port()
    metrics.serve("127.0.0.1", port)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"sar_agent_build_info" in answer.read()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        said = rf"^cannot serve metrics on 127\.0\.0\.1:{number} .*metrics_address"
        with pytest.raises(Unavailable, match=said):
            metrics.serve("127.0.0.1", number)
