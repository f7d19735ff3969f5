"""Shell's sort, by a key: for short lists inside kernels.

D. L. Shell, "A high-speed sorting procedure", CACM 2(7), 1959, with Knuth's gaps. numba's own sort
takes ten seconds to compile, this one next to nothing.
"""

from __future__ import annotations

from sar_agent.fabric.model import I32, I64, U32
from sar_agent.util.kernels import kernel_template


@kernel_template
def sort_by(nodes: U32, key: I32 | I64) -> None:
    """Sorts `nodes` uint32[n] in place by their `key`, no two alike. O(n^1.5).

    >>> import numpy as np
    >>> nodes = np.uint32([0, 1, 2])
    >>> sort_by(nodes, np.int32([7, 9, 8]))
    >>> nodes.tolist()
    [0, 2, 1]
    """
    gap = 1
    while 3 * gap + 1 < len(nodes):
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, len(nodes)):
            node = nodes[i]
            j = i
            while j >= gap and key[nodes[j - gap]] > key[node]:
                nodes[j] = nodes[j - gap]
                j -= gap
            nodes[j] = node
        gap //= 3
