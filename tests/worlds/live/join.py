"""Join a multicast group as a node would: `python -m tests.worlds.live.join PORT_GUID`.

Run inside a simulated fabric's environment. No packaged tool joins a group, so this sends the
MultiCastMemberRecord itself, through libibumad, which umad2sim connects to ibsim.
"""

from __future__ import annotations

import ctypes
import struct
import sys

BROADCAST = bytes.fromhex("ff12401bffff000000000000ffffffff")  # IPoIB's, in the default partition
_SET, _MCMEMBER, _CLASS_SA, _JOIN_FULL = 0x02, 0x0038, 0x03, 1
_MGID, _PORT_GID, _JOIN_STATE = 1 << 0, 1 << 1, 1 << 16


def request(port_guid: int) -> bytes:
    header = struct.pack(">BBBBHHQHHI", 1, _CLASS_SA, 2, _SET, 0, 0, 0x1234, _MCMEMBER, 0, 0)
    sa = bytes(12) + struct.pack(">QHHQ", 0, 0, 0, _MGID | _PORT_GID | _JOIN_STATE)
    port_gid = struct.pack(">QQ", 0xFE80000000000000, port_guid)
    record = BROADCAST + port_gid + bytes(16) + bytes([_JOIN_FULL, 0, 0, 0])
    return (header + sa + record).ljust(256, b"\0")


def main(port_guid: int) -> int:
    umad = ctypes.CDLL("libibumad.so.3", use_errno=True)
    umad.umad_get_mad.restype = ctypes.c_void_p
    umad.umad_get_mad.argtypes = [ctypes.c_void_p]
    umad.umad_init()
    port = umad.umad_open_port(None, 1)
    agent = umad.umad_register(port, _CLASS_SA, 2, 0, None)
    if port < 0 or agent < 0:
        raise SystemExit("no umad port")
    buffer = ctypes.create_string_buffer(umad.umad_size() + 256)
    where = umad.umad_get_mad(buffer)
    ctypes.memmove(where, request(port_guid), 256)
    sm_lid = int(sys.argv[2])
    umad.umad_set_addr(buffer, sm_lid, 1, 0, 0x80010000)
    if umad.umad_send(port, agent, buffer, 256, 2000, 3) < 0:
        raise SystemExit("cannot send")
    length = ctypes.c_int(256)
    if umad.umad_recv(port, buffer, ctypes.byref(length), 8000) < 0:
        raise SystemExit("no answer")
    status: int = struct.unpack_from(">H", ctypes.string_at(where, 256), 4)[0]
    print(f"status {status:#x}")
    return 0 if status == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1], 0)))
