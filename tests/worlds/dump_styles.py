"""The spellings of one dump: what ibnetdiscover of each age, ibdiagnet 2.10 and terminals make of
the same lines. The grammar is that of rdma-core's `ibnetdiscover.c` (`out_switch`, `out_ca`,
`out_switch_port`, `out_ca_port`) and of ibdiagnet's `.ibnetdiscover` in docs/file-formats.md."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_PORT = re.compile(r"(\[\d+\])((?:\([0-9a-f]+\))?)(.*)")
_NOISE = (
    "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1)",
    "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; timed out",
    "[root@mgmt ~]# ",
    "Chassis 1 (guid 0x2c9020042a1b0)",
    "Non-Chassis Nodes",
    "# a remark",
)


@st.composite
def styled(draw: st.DrawFn, text: str) -> str:
    """The same dump as another program, another age or a terminal shows it."""
    labels, full, external, grouped = (draw(st.booleans()) for _ in range(4))
    lines = []
    for line in text.split("\n"):
        if port := _PORT.fullmatch(line):
            number, guid, rest = port.groups()
            if external and not guid:
                number += f"[ext {draw(st.integers(1, 144))}]"
            if labels:
                number += "(B1D0F0/0/0/1)" if guid else f"({draw(st.integers(1, 64))}/1)"
            line = number + guid + rest
            if full:
                line += f" s={draw(st.integers(1, 9))} w=2 v=4"
        elif grouped and line.startswith("switchguid="):
            line += "\t# Line 4 Chip 1"
        if line and draw(st.integers(0, 9)) == 0:
            lines.append(draw(st.sampled_from(_NOISE)))
        lines.append(line)
    text = "\n".join(lines)
    if draw(st.booleans()):
        text = re.sub(r"\t+", lambda tabs: " " * (4 * len(tabs[0])), text)
    if draw(st.booleans()):
        text = re.sub(r"^(?=.)", " " * draw(st.integers(1, 8)), text, flags=re.MULTILINE)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text
