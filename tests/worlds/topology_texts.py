"""Texts of topology.conf and topology.yaml."""

from __future__ import annotations

TREE = """
# two leaves under a spine
SwitchName=leaf1 Nodes=n[1-2]
switchname=leaf2 NODES=n3,a-b[01-02] LinkSpeed=100   # a comment
SwitchName=mid Switches=leaf[1-2]
SwitchName=top \\
    Switches="mid"
"""


# The example of topology.yaml(5), shortened.
MANUAL = """\
---
- topology: topo1
  cluster_default: false
  tree:
    switches:
      - switch: s1
        nodes: other[01-02]
- topology: topo2
  cluster_default: false
  block:
    block_sizes: [4, 16]
    blocks:
      - block: b1
        nodes: node[01-04]
- topology: topo3
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: topo4
  flat: true
- topology: topo5
  ring:
    rings:
      - ring: ring0
        nodes: node[01-08]
- topology: topo6
  torus3d:
    toruses:
      - name: pod1
        dims: {x: 4, y: 4, z: 2}
        nodes: node[01-32]
        placements:
          - dims: {x: 2, y: 2, z: 1}
"""
