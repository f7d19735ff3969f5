"""The connection between two agents: TLS 1.3 in which both sides show the same certificate.

Both machines hold one file with a private key and its self-signed certificate, and trust nothing
else. So the file is a shared secret, and the protocol, the encryption and the comparison are
OpenSSL's. When it expires does not matter: a date would only end the copies one night.

A request is a line of JSON; so is an answer, which the bytes of files may follow.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import stat
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError, Unavailable

LONGEST_LINE = 2**24
DEADLINE = 10.0
"""Seconds for each reading or writing of a connection."""
_IGNORE_DATES = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL."""


class PeerProblem(Unavailable):
    """The peer does not answer, or not as it should."""


def tls_context(certificate: Path, *, server: bool) -> ssl.SSLContext:
    """For one side of the connection. Raises `InputError` where the file is missing, is no key with
    its certificate, or others may read it."""
    remedy = (
        "make it as docs/ha.md says, and copy it to both machines, mode 0640, owner root, "
        "group of the agent"
    )
    try:
        found = certificate.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError("is no file", file=certificate, remedy=remedy)
        if found.st_mode & 0o037 or found.st_uid not in (0, os.geteuid()):
            raise InputError(
                "holds a private key, and users other than root and the agent's may read or "
                "change it",
                file=certificate,
                remedy=f"chown root {certificate}; chmod 0640 {certificate}",
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if not server:
            context.check_hostname = False  # it is the certificate that counts
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= _IGNORE_DATES
        if server:
            context.num_tickets = 0
        context.load_cert_chain(certificate, password=_no_password)
        context.load_verify_locations(cafile=certificate)
    except ssl.SSLError as error:
        why = getattr(error, "reason", None) or error.strerror
        raise InputError(
            f"is not a private key with its certificate ({why})",
            file=certificate,
            remedy=remedy,
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", file=certificate, remedy=remedy
        ) from error
    return context


def _no_password() -> str:
    raise ssl.SSLError(0, "the key has a password")


class Channel:
    """One end of a connection that is authenticated. Methods raise `PeerProblem`."""

    def __init__(self, connection: ssl.SSLSocket, name: str) -> None:
        self._socket, self.name = connection, name
        self._socket.settimeout(DEADLINE)
        self._reader = connection.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        """A line."""
        self.send_bytes(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """The bytes of a file, or a part of them."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._problem(error) from error

    def receive(self) -> dict[str, Any] | None:
        """A line; None at the end of the connection."""
        try:
            line = self._reader.readline(LONGEST_LINE + 1)
        except OSError as error:
            raise self._problem(error) from error
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise self._problem("it sent a line that is too long, or ended in it")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._problem("it sent a line that is not JSON") from error
        if not isinstance(message, dict):
            raise self._problem("it sent a line that is no JSON object")
        return message

    def receive_bytes(self, size: int) -> bytes:
        """So many bytes."""
        data = bytearray()
        try:
            while len(data) < size and (piece := self._reader.read1(min(size - len(data), 2**20))):
                data += piece
        except OSError as error:
            raise self._problem(error) from error
        if len(data) < size:
            raise self._problem("the connection ended in the middle of a file")
        return bytes(data)

    def close(self) -> None:
        """End the connection."""
        try:
            self._reader.close()
            self._socket.close()
        except OSError:
            pass

    def _problem(self, what: OSError | str) -> PeerProblem:
        why = what if isinstance(what, str) else what.strerror or what
        return PeerProblem(f"the other agent at {self.name}: {why}")


def connect(address: tuple[str, int], context: ssl.SSLContext, deadline: float) -> Channel:
    """A connection to the agent at `address`. Raises `PeerProblem`."""
    name = f"{address[0]}:{address[1]}"
    raw = None
    try:
        raw = socket.create_connection(address, deadline)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Channel(context.wrap_socket(raw, server_hostname=None), name)
    except (OSError, ValueError) as error:
        if raw:
            raw.close()
        if isinstance(error, ssl.SSLEOFError):
            why = "it ended the connection"
        elif isinstance(error, ssl.SSLError):
            why = "it is no agent with our certificate"
        else:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise PeerProblem(f"the other agent does not answer at {name} ({why})") from error
