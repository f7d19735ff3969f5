"""A real Prometheus on loopback that scrapes what a test or the demo names."""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from sar_agent.errors import SarError
from sar_lab.live.process import Daemon, free_port, require, wait_until

# Straight to loopback: a proxy named in the environment has no business here.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Sample(NamedTuple):
    """One series of an answer: its labels and its value now."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """`with Prometheus(["127.0.0.1:9417"], [Path("deploy/rules.yml")]) as prometheus:`

    `targets` are `host:port` to scrape every `interval` seconds as job `sar-agent`; `rules` are
    rule files (alerts, recordings), evaluated as often. `url` is where it answers. Raises
    SarError if Debian's prometheus is missing or does not come up.
    """

    def __init__(
        self, targets: Sequence[str], rules: Sequence[str | Path] = (), interval: int = 1
    ) -> None:
        self.url = ""
        self._config = {  # YAML is a superset of JSON
            "global": {"scrape_interval": f"{interval}s", "evaluation_interval": f"{interval}s"},
            "rule_files": [str(Path(rule).absolute()) for rule in rules],
            "scrape_configs": [
                {
                    "job_name": "sar-agent",
                    "scrape_timeout": f"{interval}s",
                    "static_configs": [{"targets": list(targets)}],
                }
            ],
        }
        self._stack = ExitStack()

    def __enter__(self) -> Prometheus:
        require("prometheus", "prometheus")
        with self._stack as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="sar-prometheus-"))
            )
            config = folder / "prometheus.yml"
            config.write_text(json.dumps(self._config))
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            daemon = stack.enter_context(
                Daemon(
                    [
                        "prometheus",
                        f"--config.file={config}",
                        f"--storage.tsdb.path={folder / 'data'}",
                        f"--web.listen-address=127.0.0.1:{port}",
                        "--log.level=warn",
                    ],
                    folder / "log",
                )
            )
            if not wait_until(lambda: self._ready() or not daemon.alive(), 60):
                raise SarError(f"prometheus does not answer: {daemon.tail()}")
            daemon.check()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def query(self, expression: str) -> list[Sample]:
        """The series that a PromQL expression gives now; a scalar is one without labels.

        Raises SarError, in Prometheus's words, if the expression is wrong.
        """
        data = self.get("query", query=expression)
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(one["metric"], float(one["value"][1])) for one in data["result"]]

    def wait_for(self, expression: str, seconds: float = 30.0) -> list[Sample]:
        """Ask until `expression` gives any series, such as `up == 1`, and return them.

        Raises SarError if there is none after `seconds`.
        """
        if not wait_until(lambda: bool(self.query(expression)), seconds, pause=0.2):
            raise SarError(f"Prometheus has nothing for {expression!r} after {seconds:g} s")
        return self.query(expression)

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of a call of Prometheus's HTTP API: `get("rules")`, `get("alerts")`, …"""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with _open(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            said = json.load(error).get("error", error.reason)
            raise SarError(f"Prometheus refuses {path} {parameters}: {said}") from error
        except OSError as error:
            raise SarError(f"Prometheus does not answer: {error}") from error

    def _ready(self) -> bool:
        try:
            with _open(f"{self.url}/-/ready", timeout=5):
                return True
        except OSError:
            return False
