"""The connection between two agents: HTTP over TLS 1.3, in which both sides show one certificate.

Both machines hold one file with a private key and its self-signed certificate, and trust nothing
else. So the file is a shared secret, and the encryption and the comparison are OpenSSL's. When it
expires does not matter: a date would only end the copies one night.
"""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

from sar_agent.errors import InputError, Unavailable

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
            f"is not a private key with its certificate ({why})", file=certificate, remedy=remedy
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", file=certificate, remedy=remedy
        ) from error
    return context


def _no_password() -> str:
    raise ssl.SSLError(0, "the key has a password")
