"""What `sar-agent status` says about the peer, which it asks as the running agent does."""

from __future__ import annotations

import time
from typing import Any

from sar_agent.agent.state import StateStore
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.standby.peer_link import PeerLink
from sar_agent.standby.terms import TermRecord, TermStore


def peer_json(config: Config) -> dict[str, Any] | None:
    """For `status --json`; None where no peer is configured. Never raises `SarError`."""
    if not config.standby.enabled:
        return None
    known: dict[str, Any] = {"address": config.standby.peer, "problem": ""}
    try:
        record = TermStore(config.agent.state_dir).read() or TermRecord()
        known |= {
            "term": record.term,
            "own_term": bool(record.holder) and record.holder == record.node,
            "copied_at": record.copied_at,
        }
        link = PeerLink(config, lambda: False, lambda: None)
        try:
            peer = link.client.look()
        finally:
            link.close()
        known |= {
            "name": peer.claim.name,
            "installs": peer.claim.master,
            "peer_term": peer.claim.term,
            "peer_generation": peer.claim.generation,
            "same_state": link.source.snapshot() == peer.files,
        }
    except SarError as error:
        known["problem"] = str(error)
    except OSError as error:
        known["problem"] = f"{error.filename}: {error.strerror}"
    return known


def peer_words(known: dict[str, Any]) -> str:
    """For people: a line or two."""
    term = f"term {known['term']}" if "term" in known else "term not known"
    own = " (this agent's)" if known.get("own_term") else ""
    copied = known.get("copied_at")
    age = f"; copied {time.time() - copied:.0f} s ago" if copied and not own else ""
    if known["problem"]:
        return f"peer       {known['address']}: {known['problem']}\n           {term}{own}{age}"
    role = "installs" if known["installs"] else "copies"
    same = "the same state" if known["same_state"] else "another state"
    return (
        f"peer       {known['name']} at {known['address']} {role}, generation "
        f"{known['peer_generation']}, term {known['peer_term']}\n"
        f"           {same} here, {term}{own}{age}"
    )


def fetch(config: Config) -> str:
    """Copy the peer's state once, before OpenSM starts; returns what was done, in a sentence.
    Raises `SarError` where the peer does not answer, or its state is refused."""
    link = PeerLink(config, lambda: False, lambda: None)
    try:
        link.exchange_once()
    finally:
        link.close()
    record = link.terms.load()
    state = StateStore(config.agent.state_dir).load()
    generation = state.generation if state else 0
    what = "was copied" if link.report.adopted else "is here already, or is newer here"
    return f"the peer's state {what}: generation {generation}, term {record.term}"
