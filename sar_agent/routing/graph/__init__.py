"""The graph algorithms of routing: one file an algorithm, under its textbook name.

`csr`                 the live network as arrays: compressed sparse rows
`hop_counts`          hops between all pairs of switches
`shortest_path_dag`   breadth-first search towards a root, with all shortest paths
`next_hops`           following one destination's forwarding table
`successors`          how the algorithms below see a graph, whatever it is stored as
`topological_order`   Kahn's algorithm, also for graphs with cycles
`two_way_search`      an acyclic order kept while edges come, labels in a list

S switches, C channels (one direction of a cable between switches), D = T + S destinations.
`sar_agent/check/` shares nothing with this folder on purpose: it proves what comes out of here.
"""
