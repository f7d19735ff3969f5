"""Whatever bytes come: every reader gives something, or one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sar_agent.errors import SarError
from tests.examples import share
from tests.property.mutated import Figures, try_all
from tests.property.mutator import mutated
from tests.property.readers import Reader, readers

NAMES = [
    *(
        "LFT dump",
        "adaptive routing",
        "counter files",
        "counter growth",
        "db_csv",
        "door",
        "fabric, any",
        "far",
        "fdbs",
        "folder of ibdiagnet",
        "hints.json",
        "history by hour",
        "host list",
        "ibnetdiscover",
    ),
    *("ibsim .net", "job map", "leases.json", "partition policy", "partitions.conf"),
    *(
        "phases of ranks",
        "plugin's status",
        "port errors",
        "ports",
        "psl",
        "routes file",
        "routes file, sums right",
    ),
    *(
        "sacct history",
        "settings",
        "settings, file",
        "sinfo",
        "slvl",
        "squeue JSON",
    ),
    *("squeue text", "squeue, polled", "state.json", "subnet.lst", "subscribers.json"),
    *("topology.conf", "topology.yaml", "traffic words", "update.json"),
]
NEVER_REFUSE = {
    *("door", "folder of ibdiagnet", "hints.json", "leases.json", "state.json"),
    *("subscribers.json", "traffic words", "update.json"),
}
"""They answer, or go on without a file that is broken."""
MOST_BYTES = 2**29
"""That one input of 64 kB may take: a host list may name a million hosts."""


@pytest.fixture(scope="module")
def all_readers() -> Iterator[dict[str, Reader]]:
    logging.disable()
    with readers() as found:
        yield {one.name: one for one in found}
    logging.disable(logging.NOTSET)


def sound(figures: Figures) -> None:
    told = [f"{one.what}; input {one.number}: {one.data!r}" for one in figures.defects.values()]
    assert not told, "\n".join(told)
    assert figures.peak < MOST_BYTES, f"input {figures.peak_number} takes {figures.peak} bytes"


def test_the_names_are_all(all_readers: dict[str, Reader]) -> None:
    assert sorted(all_readers) == NAMES


def test_a_byte_order_mark_is_no_part_of_a_text(all_readers: dict[str, Reader]) -> None:
    """An editor of Windows writes one before anything."""
    for reader in all_readers.values():
        if reader.name == "plugin's status":  # our own plugin's, over a socket
            continue
        for seed in (seed for seed in reader.seeds if b"\0" not in seed):
            with suppress(SarError):
                reader.read(seed)
                try:
                    reader.read(b"\xef\xbb\xbf" + seed)
                except SarError as error:
                    pytest.fail(f"{reader.name}: {error}")


@pytest.mark.parametrize("name", NAMES)
def test_good_seeds_are_taken(all_readers: dict[str, Reader], name: str) -> None:
    """Or the mutator would only be refused at the door."""
    for seed in all_readers[name].seeds:
        all_readers[name].read(seed)


@pytest.mark.parametrize("name", NAMES)
def test_a_few_broken_inputs(all_readers: dict[str, Reader], name: str) -> None:
    figures = try_all(all_readers[name], 10**9, share(100))
    sound(figures)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_many_broken_inputs(all_readers: dict[str, Reader], name: str) -> None:
    """A million over all is `SAR_EXAMPLES=16`."""
    figures = try_all(all_readers[name], 0, share(2000))
    sound(figures)
    assert figures.taken
    assert (figures.taken == figures.inputs) == (name in NEVER_REFUSE)


def test_a_number_is_an_input() -> None:
    seeds = (b"one two 3\n", b"four\n")
    made = [mutated(seeds, number) for number in range(300)]
    assert made == [mutated(seeds, number) for number in range(300)]
    assert len(set(made)) > 200


def test_a_defect_is_found() -> None:
    """The watch itself."""

    def odd(data: bytes) -> None:
        if len(data) % 2:
            raise ValueError(f"{len(data)} bytes")

    figures = try_all(Reader("odd", (b"abcdef",), odd), 0, 100)
    (defect,) = figures.defects.values()
    assert 0 < defect.count < 100 and "ValueError" in defect.what
    assert figures.taken + defect.count == figures.inputs == 100
