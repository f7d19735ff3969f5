"""Checks that run after the built-in ones: what a `Check` is, and how registered ones are run.

The built-in checks (every pair is reached, no credit loop) are the proof that the next check builds
on, so `verdict.py` calls them itself. All others are objects registered in the entry-point group
`sar_agent.checks`, ours and those of other packages alike.

What is not known is not proved: a check that cannot be loaded, raises an unexpected
error, or returns something else than findings makes the routes unproved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Protocol

from sar_agent.check.walk import read_only
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.routing.routes import Routes
from sar_agent.util.extensions import extensions, load_point, package_of

GROUP = "sar_agent.checks"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finding:
    """One problem for which the routes may not be installed."""

    problem: str
    """A sentence for a person, without a full stop."""
    error: type[CheckFailed] = CheckFailed
    """The class that `Verdict.require` raises for it."""
    check: str = ""
    """The registered name of the check that found it; empty for the built-in checks."""


class Check(Protocol):
    """A property of routes that must hold before they are installed.

    An entry point of the group `sar_agent.checks` names a class, which is called without arguments
    for each verdict, so a check keeps nothing from one set of routes to the next.
    """

    def findings(self, fabric: Fabric, routes: Routes) -> Iterable[Finding]:
        """The problems of `routes`, none where the property holds.

        The routes have passed the built-in checks: every pair is reached and hosts close no credit
        loop. Their tables are read-only.
        """


def registered_findings(fabric: Fabric, routes: Routes) -> tuple[Finding, ...]:
    """What all registered checks find, in the order of their names."""
    points = extensions(GROUP)
    if not points:
        return ()
    routes = replace(
        routes,
        egress=read_only(routes.egress),
        service_level=None if routes.service_level is None else read_only(routes.service_level),
        hop_lane=None if routes.hop_lane is None else read_only(routes.hop_lane),
    )
    return tuple(finding for point in points for finding in _findings(point, fabric, routes))


def _findings(point: EntryPoint, fabric: Fabric, routes: Routes) -> list[Finding]:
    """The findings of one check. A check that raises a `CheckFailed` states a finding by it; after
    any other error the routes are not proved, which is a finding, too."""
    try:
        check: Check = load_point(point, "check")()
        found = list(check.findings(fabric, routes))
        for finding in found:
            if not isinstance(finding, Finding):
                raise TypeError(f"{finding!r:.80} is not a Finding")
            # The agent would take any other error for something else than a failed check.
            if not (isinstance(finding.error, type) and issubclass(finding.error, CheckFailed)):
                raise TypeError(f"{finding.error!r:.80} is not a CheckFailed")
        return [replace(finding, check=point.name) for finding in found]
    except CheckFailed as error:
        return [Finding(str(error), type(error), point.name)]
    except SarError as error:
        problem = str(error)
    except Exception as error:
        log.exception("check %r of %s failed", point.name, package_of(point))
        problem = f"{type(error).__name__}: {error}"
    sentence = (
        f"check {point.name!r} of {package_of(point)} could not be completed, so the routes are "
        f"not proved: {problem}"
    )
    return [Finding(sentence, check=point.name)]
