"""Archives on their way between two machines.

`agent.peer` is a command, of ssh, that runs `sar-agent serve-state` on the other machine as a
forced command. What it reads begins with one line: that of an archive to take, or `sar-agent
fetch`. It answers with one line of JSON (`Answer`), or with its archive.
"""

from __future__ import annotations

import time
from contextlib import suppress
from tempfile import TemporaryFile
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_agent import __version__
from sar_agent.agent.history import History, Row
from sar_agent.agent.peer import PeerRecord, PeerStore
from sar_agent.agent.quiet import role_of
from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unavailable
from sar_agent.services.archive.files import StateFolders
from sar_agent.services.archive.format import (
    LARGEST,
    LONGEST_LINE,
    MAGIC,
    ArchiveRefused,
    Edition,
    Number,
    read_header,
)
from sar_agent.services.archive.own import archive_path, host_name, make_archive
from sar_agent.services.archive.take import (
    MOST_TOLD,
    add_decisions,
    is_here,
    own_order,
    refusal,
    take,
)
from sar_agent.util.programs import run_program_bytes

FETCH = b"sar-agent fetch\n"
LONGEST_ANSWER = 2**21
SEND_SECONDS = 120.0
SERVE_SECONDS = 300
FETCH_SECONDS = 30.0
"""OpenSM waits for it before it starts."""
REMEDY = "agent.peer is the command that runs sar-agent serve-state on the other machine"


class Answer(BaseModel):
    """What the other machine says of an archive that it was sent, or why it gives none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    has: bool
    """Whether it has this state now."""
    sentence: str = Field(default="", max_length=4000)
    release: str = Field(default="", max_length=64)
    host: str = Field(default="", max_length=255)
    generation: Number = 0
    edition: Number = 0
    """Of the state that it has now."""
    decisions: list[Row] = Field(default=[], max_length=MOST_TOLD)
    """Of its history, which the archive did not have."""


def send(config: Config) -> str:
    """Give the other machine this agent's archive, where this OpenSM is the master; returns what
    was done, in a sentence. `peer.json` says it, too. Raises `SarError` where the other machine
    does not have the state afterwards."""
    role = role_of(config)
    if role != "master":
        return f"this OpenSM is {role}: only the master's agent sends its archive"
    store = PeerStore(config.agent.state_dir)
    record = store.load() or PeerRecord()
    try:
        made = make_archive(config)
        answer = _send(config)
        theirs = Edition(answer.generation, answer.edition)
        if not answer.has and theirs.generation == made.generation and theirs >= made.order:
            # Both have changed the state of this generation: that of the master counts.
            made = make_archive(config, above=theirs)
            answer = _send(config)
        if not answer.has:
            why = answer.sentence
            if answer.generation > made.generation:
                why += f"; the next generation here will be above {answer.generation}"
            record = _heard(record, answer)
            raise Unavailable(f"{answer.host or 'the other machine'}: {why}")
    except SarError as error:
        store.save(record.model_copy(update={"problem": str(error)}))
        raise
    add_decisions(History(config.agent.state_dir), answer.decisions)
    record = _heard(record, answer)
    store.save(record.model_copy(update={"problem": "", "same_at": time.time()}))
    return (
        f"{answer.host} has the state of generation {made.generation}, edition {made.edition} "
        f"({made.size} bytes)"
    )


def fetch(config: Config) -> str:
    """Take the other machine's archive, before OpenSM starts here; returns what was done, in a
    sentence. Raises `SarError` where that machine does not answer, or its archive is refused."""
    if role_of(config) == "master":
        raise Unavailable("the OpenSM here is the master: it has the newest state")
    with TemporaryFile() as request:
        request.write(FETCH)
        request.seek(0)
        out = run_program_bytes(
            config.agent.peer,
            deadline=FETCH_SECONDS,
            most=LARGEST + LONGEST_LINE,
            remedy=REMEDY,
            stdin=request,
        )
    if not out.startswith(MAGIC):
        raise Unavailable(f"the other machine gives no archive: {_answer(out).sentence}")
    line, _, body = out.partition(b"\n")
    header = read_header(line + b"\n", "the other machine's answer")
    name = f"the archive of {header.host}"
    if why := refusal(config, header, name):
        raise ArchiveRefused(why)
    what = "is here already"
    if not is_here(config, header):
        take(config, header, body, name)
        what = "was taken"
    return f"{name} {what}: generation {header.generation}, edition {header.edition}"


def serve(config: Config, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer one request of the other machine. Raises no `SarError`."""
    line = requests.readline(LONGEST_LINE)
    answer = Answer(has=False)
    try:
        if line == FETCH:
            header = make_archive(config)
            with archive_path(config.agent.state_dir).open("rb") as file:
                data = file.read(LARGEST + LONGEST_LINE)
            assert data.startswith(MAGIC) and header.size < len(data)
            answers.write(data)
            answers.flush()
            return
        header = read_header(line, "what was sent")
        name = f"the archive of {header.host}"
        if why := refusal(config, header, name):
            raise ArchiveRefused(why)
        told: list[Row] = []
        if not is_here(config, header):
            told = take(config, header, requests.read(header.size + 1), name)
        answer = Answer(has=True, decisions=told)
    except SarError as error:
        answer = Answer(has=False, sentence=str(error)[:4000])
    except OSError as error:
        answer = Answer(has=False, sentence=f"{error.filename}: {error.strerror}"[:4000])
    known = {"release": __version__, "host": host_name()}
    with suppress(SarError):
        order = own_order(config)
        answer = answer.model_copy(
            update=known | {"generation": order.generation, "edition": order.number}
        )
    answers.write(answer.model_dump_json().encode() + b"\n")
    answers.flush()


def changed_since(config: Config) -> object:
    """Compares equal as long as an archive of now would be the same."""
    return StateFolders.of(config.agent).identities(history=True)


def _send(config: Config) -> Answer:
    with archive_path(config.agent.state_dir).open("rb") as file:
        out = run_program_bytes(
            config.agent.peer,
            deadline=SEND_SECONDS,
            most=LONGEST_ANSWER,
            remedy=REMEDY,
            stdin=file,
        )
    return _answer(out)


def _answer(out: bytes) -> Answer:
    try:
        return Answer.model_validate_json(out)
    except ValidationError as error:
        shown = out[:80].decode("ascii", "replace")
        raise Unavailable(f"the other machine's answer is not of serve-state: {shown!r}") from error


def _heard(record: PeerRecord, answer: Answer) -> PeerRecord:
    return record.model_copy(
        update={
            "host": answer.host,
            "generation": answer.generation,
            "edition": answer.edition,
        }
    )
