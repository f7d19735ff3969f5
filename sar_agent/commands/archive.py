"""`send-state`, `serve-state`: the archive for the machine of a second OpenSM. Units and sshd call
them."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, print_answer
from sar_agent.commands.service import for_writing, log_to_stderr
from sar_agent.errors import InputError

if TYPE_CHECKING:
    from sar_agent.config.model import Config


def send_state(
    config: ConfigOption = CONFIG_PATH,
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            min=0.1,
            metavar="SECONDS",
            help="go on, and look this often whether the state has changed; for "
            "sar-agent-archive.service",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give the machine of the second OpenSM (agent.peer) an archive of this agent's state, if this
    OpenSM is the master.

    Exit code 1 if that machine does not have the state afterwards.
    """
    log_to_stderr()
    settings = for_writing(config, "send-state")
    _require_peer(settings, config)
    if every is None:
        from sar_agent.services.archive.exchange import send

        sentence = send(settings)
        print_answer({"sentence": sentence}, sentence, as_json=as_json)
        return
    from sar_agent.services.archive.sender import Sender

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Sender(settings).run(every, stop)


def serve_state(config: ConfigOption = CONFIG_PATH) -> None:
    """Answer the machine of the other OpenSM: take its archive from stdin, or give it this agent's.

    It is the forced command of a key in authorized_keys (docs/ha.md).
    """
    settings = for_writing(config, "serve-state")
    from sar_agent.services.archive.exchange import SERVE_SECONDS, serve

    signal.alarm(SERVE_SECONDS)  # whoever connects and sends nothing does not stay
    serve(settings, sys.stdin.buffer, sys.stdout.buffer)


def _require_peer(settings: Config, config: Path) -> None:
    if not settings.agent.peer:
        raise InputError(
            "agent.peer is empty, so there is no machine to send to",
            file=config,
            remedy="set it as docs/ha.md says, or disable sar-agent-archive.service",
        )
