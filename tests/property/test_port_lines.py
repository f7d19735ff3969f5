"""Lines of forwarding tables compared with one format string a line."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.formats.port_lines import PortLines

texts = st.binary(max_size=6)
switches = st.lists(st.integers(0, 255), min_size=1, max_size=4)


@given(st.lists(st.tuples(texts, texts, switches), max_size=12))
def test_each_switch_has_its_own_ports(rows: list[tuple[bytes, bytes, list[int]]]) -> None:
    lines = PortLines([begin for begin, _, _ in rows], [end for _, end, _ in rows])
    for turn in range(3):  # what one switch left behind is not in the text of the next
        ports = [ports[turn % len(ports)] for _, _, ports in rows]
        expected = [
            b"%s%03d%s" % (begin, port, end)
            for (begin, end, _), port in zip(rows, ports, strict=True)
            if port != 255
        ]
        assert lines.text(np.array(ports, np.uint8)) == b"".join(expected)
