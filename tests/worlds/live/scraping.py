"""A real Prometheus on loopback that scrapes the targets of a test."""

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

# Connections to loopback must not use a proxy from the environment.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Sample(NamedTuple):
    """One series of a query: its labels and its present value."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """`with Prometheus(["127.0.0.1:9417"], [Path("deploy/rules.yml")]) as prometheus:`

    `targets` are `host:port` to scrape every `interval` seconds as job `sar-agent`; `rules` are
    rule files (alerts, recordings), evaluated at the same interval. `url` is its address. Raises
    SarError if Debian's prometheus is missing or does not start.
    """

    def __init__(
        self,
        targets: Sequence[str],
        rules: Sequence[str | Path] = (),
        interval: int = 1,
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
        """The present series of a PromQL expression; a scalar is a series without labels.

        Raises SarError with Prometheus's message if the expression is wrong.
        """
        data = self.get("query", query=expression)
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(row["metric"], float(row["value"][1])) for row in data["result"]]

    def wait_for(self, expression: str, seconds: float = 30.0) -> list[Sample]:
        """Query until `expression` (such as `up == 1`) gives any series, and return them.

        Raises SarError if it gives no series within `seconds`.
        """
        if not wait_until(lambda: bool(self.query(expression)), seconds, pause=0.2):
            raise SarError(f"Prometheus has no series for {expression!r} after {seconds:g} s")
        return self.query(expression)

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of a request to Prometheus's HTTP API: `get("rules")`, `get("alerts")`, …"""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with _open(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            message = json.load(error).get("error", error.reason)
            raise SarError(f"Prometheus refuses {path} {parameters}: {message}") from error
        except OSError as error:
            raise SarError(f"Prometheus does not answer: {error}") from error

    def _ready(self) -> bool:
        try:
            with _open(f"{self.url}/-/ready", timeout=5):
                return True
        except OSError:
            return False
