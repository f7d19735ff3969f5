"""Whatever OpenSM discovered, the plugin's file gives the fabric that ibnetdiscover would give;
whatever happened to the file, it gives a fabric or one sentence."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.node_records import NodeRecord
from sar_agent.fabric.opensm_file import decode_opensm_fabric
from tests.examples import examples
from tests.worlds.fabric_texts import SMALL, differences, in_order_of_guids
from tests.worlds.fabrics import records
from tests.worlds.opensm_files import HEADER, image_of_records, image_of_text, known_rate, sealed

WHOLE = image_of_text(SMALL)
COUNTS = HEADER.unpack(WHOLE[: HEADER.size])[4:8]


def as_printed(node: NodeRecord) -> NodeRecord:
    """As ibnetdiscover would print it: 63 bytes, blanks for what is not printable ASCII; rates
    that no link has are unreadable."""
    raw = node.description.encode()[:63].split(b"\0")[0]
    words = "".join(chr(c) if 32 <= c < 127 else " " for c in raw)
    return replace(
        node,
        description=words or (f"S-{node.guid:016x}" if node.kind == "S" else ""),
        ends=[e._replace(rate=e.rate if known_rate(e.rate)[0] else None) for e in node.ends],
    )


@examples()
@given(records().filter(lambda nodes: any(node.kind == "H" for node in nodes)))
def test_it_is_the_fabric_of_the_records(nodes: list[NodeRecord]) -> None:
    nodes = [replace(n, description=n.description.replace("\0", "")) for n in nodes]
    ours = decode_opensm_fabric(image_of_records(nodes)).fabric
    theirs = assemble("records", [as_printed(node) for node in nodes], None)
    assert differences(in_order_of_guids(ours), in_order_of_guids(theirs)) == []


EDITS = st.lists(
    st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8
)


@examples(500)
@given(EDITS, st.integers(0, len(WHOLE)), st.booleans())
def test_a_mutated_file_is_a_fabric_or_one_sentence(
    edits: list[tuple[int, int]], end: int, seal: bool
) -> None:
    """Half of them with right checksums, so that each rule behind them meets odd values."""
    image = bytearray(WHOLE)
    for at, value in edits:
        image[at] = value
    mutated = sealed(bytes(image[HEADER.size :]), COUNTS) if seal else bytes(image[:end])
    try:
        fabric, _ = decode_opensm_fabric(mutated)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert fabric.switches and len(fabric.digest) == 32


@examples(300)
@given(st.binary(max_size=200), st.tuples(*[st.integers(0, 9)] * 4), st.booleans())
def test_any_bytes(payload: bytes, counts: tuple[int, int, int, int], seal: bool) -> None:
    try:
        decode_opensm_fabric(sealed(payload, counts) if seal else payload)
    except InputError as error:
        assert "\n" not in str(error)
