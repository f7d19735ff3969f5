"""munge credentials, decoded by libmunge in this process.

`unmunge` would be a new process for each message: 3 ms, so that 1,000 a second would take more
than the machine has. libmunge is a hundred lines of C between us and munged; it takes 0.2 ms, gives
the interpreter to other threads while it waits, and has deadlines of its own where munged hangs.
It is opened only here, so that a site without munge needs none.
"""

from __future__ import annotations

import ctypes

from sar_agent.errors import Unavailable
from sar_agent.events.message import LONGEST_PAYLOAD, MessageRefused, RefusalReason

# Of munge.h; the numbers are munge's ABI.
_SOCKET_OPTION = 8
_SUCCESS, _REPLAYED = 0, 17
_AWAY = {1: "internal error", 5: "no memory", 6: "its socket does not answer", 7: "time is over"}


class Munge:
    """libmunge, and munged's socket `socket` ("": the one that libmunge was built for).

    Raises `Unavailable` where there is no libmunge. Any number of threads may call `decode`.
    """

    def __init__(self, socket: str = "") -> None:
        try:
            library = ctypes.CDLL("libmunge.so.2")
        except OSError as error:
            raise Unavailable(
                "libmunge.so.2 is not installed, so nobody can be believed on a socket; "
                "install munge, or give a folder as events.spool"
            ) from error
        self._socket = socket.encode()
        self._create = library.munge_ctx_create
        self._create.restype = ctypes.c_void_p
        self._create.argtypes = []
        self._destroy = library.munge_ctx_destroy
        self._destroy.restype = None
        self._destroy.argtypes = [ctypes.c_void_p]
        self._set = library.munge_ctx_set  # of any number of arguments, so they are cast here
        self._set.restype = ctypes.c_int
        self._decode = library.munge_decode
        self._decode.restype = ctypes.c_int
        self._decode.argtypes = [
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_int),
            ctypes.POINTER(ctypes.c_uint32),
            ctypes.POINTER(ctypes.c_uint32),
        ]
        self._strerror = library.munge_strerror
        self._strerror.restype = ctypes.c_char_p
        self._strerror.argtypes = [ctypes.c_int]
        self._free = ctypes.CDLL(None).free
        self._free.restype = None
        self._free.argtypes = [ctypes.c_void_p]

    def decode(self, credential: bytes) -> tuple[int, bytes]:
        """The sender's uid and what was signed. Raises `MessageRefused`."""
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
            # A payload may be there with an error, too (expired, replayed).
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
        if error in _AWAY:
            raise MessageRefused(RefusalReason.NO_MUNGE, f"munged does not answer ({_AWAY[error]})")
        said = self._strerror(error).decode(errors="replace")
        raise MessageRefused(
            RefusalReason.CREDENTIAL, f"munge does not believe the credential: {said}"
        )
