"""Small routes files, by which the readers in Python and in C are both tested."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from sar_agent.formats.routes_file import RoutesFile, encode

HEADER_SIZE = 128


def small_routes(
    *,
    offsets: int = 1,
    lanes: int = 1,
    seed: int = 1,
    hops: bool = False,
    dumped: bool = False,
    numbered: bool = False,
    wide: int = 5,
) -> RoutesFile:
    """Valid by the format's rules (not by a fabric's): 3 switches, 4 terminals, GUIDs unsorted."""
    rng = np.random.default_rng(seed)
    switches, terminals = 3, 4
    shape = (offsets, switches, terminals + switches)
    forwarding = rng.integers(1, 5, shape).astype(np.uint8)
    forwarding[:, np.arange(switches), terminals + np.arange(switches)] = 0
    forwarding[0, 0, 1] = 255
    had = forwarding.copy()
    had[-1, 0, 2:4], had[0, 0, 1] = (254, 255), 3
    more = lanes > 1 and not hops
    ends = np.full((3, wide + 1), 2**32 - 1, np.uint32)
    ends[0, 4], ends[1, 5], ends[1, 1], ends[2, 2] = 1 << 8 | 5, 4, 2 << 8 | 2, 1 << 8 | 1
    return RoutesFile(
        generation=7,
        engine="sar-plus",
        fabric_digest=bytes(range(32)),
        made_at=1_700_000_000,
        lanes=lanes,
        switch_guids=np.array([0x30, 0x10, 2**63 + 5], np.uint64),
        terminal_guids=np.array([9, 2**64 - 1, 7, 8], np.uint64),
        terminal_leaf=np.array([0, 1, 2, 0], np.uint32),
        switch_ports=np.array([4, 5, wide], np.uint8),
        forwarding=forwarding,
        far_ends=ends,
        senders=np.array([1, 0, 0], np.uint8),
        service_levels=rng.integers(0, 16, shape).astype(np.uint8) if more else None,
        sl_to_vl=np.where(np.arange(16) == 9, 15, np.arange(16) % lanes).astype(np.uint8)
        if more
        else None,
        fallback_sl=np.zeros(offsets, np.uint8) if more else None,
        hop_lanes=rng.integers(0, lanes, (3, wide + 1, wide + 1)).astype(np.uint8)
        if hops
        else None,
        had=had if dumped else None,
        numbers=rng.integers(0, 2**32, (lanes, 3, wide + 1)).astype(np.uint32)
        if numbered
        else None,
        loads=rng.integers(0, 65537, (3, wide + 1)).astype(np.uint32) if numbered else None,
    )


def valid_images() -> Iterator[bytes]:
    for offsets in (1, 2, 5):
        for lanes in (1, 2, 15):
            yield encode(small_routes(offsets=offsets, lanes=lanes))
        yield encode(small_routes(offsets=offsets, lanes=3, hops=True))
        yield encode(small_routes(offsets=offsets, dumped=True))
        yield encode(small_routes(offsets=offsets, lanes=offsets, numbered=True))
    yield encode(small_routes(lanes=2, hops=True, dumped=True))
    yield encode(small_routes(lanes=2, hops=True, dumped=True, numbered=True))
    yield encode(small_routes(lanes=3, dumped=True, numbered=True))
    yield encode(small_routes(lanes=2, dumped=True, wide=253))


def sealed(image: bytes) -> bytes:
    """`image` with right checksums, so that a reader has to look further than those."""
    body = bytearray(image)
    body[120:124] = struct.pack("<I", zlib.crc32(bytes(body[HEADER_SIZE:])))
    body[124:128] = struct.pack("<I", zlib.crc32(bytes(body[:124])))
    return bytes(body)


def damaged(image: bytes) -> Iterator[bytes]:
    """Each byte flipped, each truncation, one byte too many."""
    for at in range(len(image)):
        yield image[:at] + bytes([image[at] ^ 0xFF]) + image[at + 1 :]
        yield image[:at]
    yield image + b"\0"


def lying(image: bytes) -> Iterator[bytes]:
    """Each byte set to something else under right checksums: some are valid, some are not."""
    for at in [*range(120), *range(HEADER_SIZE, len(image))]:
        for value in {0, 1, 5, 16, 255, image[at] ^ 1} - {image[at]}:
            yield sealed(image[:at] + bytes([value]) + image[at + 1 :])
