"""Decodes munge credentials with libmunge, in this process.

`unmunge` would start a process for each message: 3 ms, so 1,000 messages a second would take more
than one core. libmunge takes 0.2 ms, releases the interpreter while it waits, and has deadlines of
its own if munged hangs. The library is opened only here, so a site without munge does not need it.
"""

from __future__ import annotations

import ctypes
from typing import Any

from sar_agent.errors import Unavailable
from sar_agent.events.message import LONGEST_PAYLOAD, MessageRefused, RefusalReason

# From munge.h; the numbers are part of munge's ABI.
_SOCKET_OPTION = 8
_SUCCESS, _REPLAYED = 0, 17
_UNAVAILABLE = {1: "internal error", 5: "no memory", 6: "its socket does not answer", 7: "timeout"}


class Munge:
    """libmunge with munged's socket `socket`; "" is the one that libmunge was built for.

    Raises `Unavailable` if libmunge is not installed. Any number of threads may call `decode`.
    """

    def __init__(self, socket: str = "") -> None:
        try:
            library = ctypes.CDLL("libmunge.so.2")
        except OSError as error:
            raise Unavailable(
                "libmunge.so.2 is not installed, so messages on a socket cannot be authenticated; "
                "install munge"
            ) from error
        self._socket = socket.encode()
        text, pointer, number = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
        numbers, pointers = ctypes.POINTER(number), ctypes.POINTER(pointer)
        uids = ctypes.POINTER(ctypes.c_uint32)
        self._create = _function(library, "munge_ctx_create", pointer)
        self._destroy = _function(library, "munge_ctx_destroy", None, pointer)
        self._decode = _function(
            library, "munge_decode", number, text, pointer, pointers, numbers, uids, uids
        )
        self._strerror = _function(library, "munge_strerror", text, number)
        self._free = _function(ctypes.CDLL(None), "free", None, pointer)
        self._set = library.munge_ctx_set  # variadic, so the arguments are cast below
        self._set.restype = number

    def decode(self, credential: bytes) -> tuple[int, bytes]:
        """The uid of the sender and the signed payload. Raises `MessageRefused`."""
        payload, length = ctypes.c_void_p(), ctypes.c_int()
        uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
        context = self._create()
        if not context:
            raise MessageRefused(RefusalReason.NO_MUNGE, "munge: no memory")
        try:
            if self._socket:
                self._set(ctypes.c_void_p(context), _SOCKET_OPTION, ctypes.c_char_p(self._socket))
            error = self._decode(
                credential,
                context,
                ctypes.byref(payload),
                ctypes.byref(length),
                ctypes.byref(uid),
                ctypes.byref(gid),
            )
            # Some errors come with a payload, too (expired, replayed).
            if payload.value and 0 < length.value <= LONGEST_PAYLOAD:
                data = ctypes.string_at(payload.value, length.value)
            else:
                data = b""
        finally:
            if payload.value:
                self._free(payload)
            self._destroy(context)
        if error == _SUCCESS:
            if length.value > LONGEST_PAYLOAD:
                raise MessageRefused(
                    RefusalReason.OVERSIZE, f"a message has at most {LONGEST_PAYLOAD} bytes"
                )
            return uid.value, data
        if error == _REPLAYED:
            raise MessageRefused(RefusalReason.REPLAYED, "this credential was used before")
        if error in _UNAVAILABLE:
            raise MessageRefused(
                RefusalReason.NO_MUNGE, f"munged does not answer ({_UNAVAILABLE[error]})"
            )
        problem = self._strerror(error).decode(errors="replace")
        raise MessageRefused(RefusalReason.CREDENTIAL, f"munge rejects the credential: {problem}")


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function
