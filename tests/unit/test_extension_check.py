"""A check from a package outside the tree decides over routes like a built-in one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from sar_agent.check import check_and_prove, check_routes
from sar_agent.errors import CheckFailed, CreditLoop
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.install.plan import make_plan
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.util.extensions import installed


@contextmanager
def installed_package(folder: Path, module: str, source: str, points: str) -> Iterator[None]:
    """Within it the module `module` of this source is installed, in the package `toy-<module>`;
    `points` is the content of its entry_points.txt."""
    site = folder / "site"
    metadata = site / f"toy_{module}-0.1.dist-info"
    metadata.mkdir(parents=True)
    (site / f"{module}.py").write_text(dedent(source))
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-{module}\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(dedent(points))
    sys.path.insert(0, str(site))
    installed.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        sys.modules.pop(module, None)
        installed.cache_clear()


FABRIC = xgft_fabric("xgft:2;4,4;1,2")
ROUTES = load_engine("minhop").route(FABRIC, JobMix(()), Options())
PORTS = """
    from sar_agent.check import Finding
    from sar_agent.errors import CheckFailed

    class PortReserved(CheckFailed):
        pass

    class ReservedPort:
        \"\"\"No packet leaves switch 0 by the port MOST or a higher one.\"\"\"

        def findings(self, fabric, routes):
            used = routes.egress[:, :, 0]
            highest = int(used[used != 255].max())
            if highest >= MOST:
                yield Finding(f"port {highest} of switch 0 is reserved", PortReserved)
"""


@contextmanager
def check_installed(folder: Path, source: str, name: str = "ReservedPort") -> Iterator[None]:
    points = f"[sar_agent.checks]\nports = toy_check:{name}\n"
    with installed_package(folder, "toy_check", source, points):
        yield


def test_a_finding_is_raised_as_its_own_error(tmp_path: Path) -> None:
    before = check_and_prove(FABRIC, ROUTES)
    assert before.verdict.passed and before.proved
    with check_installed(tmp_path, PORTS + "    MOST = 1\n"):
        verdict, proved = check_and_prove(FABRIC, ROUTES)
        assert proved is None and not verdict.passed
        assert verdict.deadlock_free and verdict.unreachable_pairs == 0
        assert [finding.check for finding in verdict.findings] == ["ports"]
        assert verdict.problems[0].endswith("of switch 0 is reserved")
        with pytest.raises(CheckFailed, match="is reserved") as caught:
            make_plan(1, FABRIC, JobMix(()), ROUTES)
        assert type(caught.value).__name__ == "PortReserved"
        assert not isinstance(caught.value, CreditLoop)
    assert check_routes(FABRIC, ROUTES).passed


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise KeyError('no such rack')", "KeyError: 'no such rack'"),
        ("routes.egress[:] = 0", "ValueError: assignment destination is read-only"),
        ("return ['port 1']", "TypeError: 'port 1' is not a Finding"),
        ("return [Finding('x', ValueError)]", "is not a CheckFailed"),
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("raise Unavailable('the policy server is away')", "the policy server is away"),
    ],
)
def test_a_check_that_fails_itself_proves_nothing(body: str, problem: str, tmp_path: Path) -> None:
    source = f"""
        from sar_agent.check import Finding
        from sar_agent.errors import Unavailable

        class Broken:
            def findings(self, fabric, routes):
                {body}
    """
    table = ROUTES.egress.copy()
    with check_installed(tmp_path, source, "Broken"):
        verdict, proved = check_and_prove(FABRIC, ROUTES)
        assert proved is None and len(verdict.problems) == 1
        assert verdict.problems[0].startswith(
            "check 'ports' of toy-toy_check 0.1 could not be completed, so the routes are not "
            "proved: "
        )
        assert problem in verdict.problems[0]
        with pytest.raises(CheckFailed) as caught:
            verdict.require()
        assert type(caught.value) is CheckFailed
    assert (ROUTES.egress == table).all()
