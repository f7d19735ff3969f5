"""`sar-lab emulate`: OpenSM's tables under real packets, and programs that are timed on them.

Every switch and every host port is a network namespace, every cable a veth pair with a rate (`tbf`)
at both ends, and every entry of a forwarding table a `/32` route. Ranks are processes in the
namespaces of the hosts and send over TCP.

It is an IP network with InfiniBand's tables: without credits, head-of-line blocking, virtual lanes,
RDMA and adaptive routing. The means are those of Mininet-HiFi (Handigol, Heller, Jeyakumar, Lantz,
McKeown: Reproducible Network Experiments Using Container-Based Emulation, CoNEXT 2012), its rule of
idle time as well.

`namespaces.py` builds the fabric, `tables.py` writes routes and reads them back, `phases.py` says
what ranks send, `ranks.c` sends it, `runner.py` starts and times it, `idle.py` says what counts,
`statistics.py` compares, `emulation.py` is the whole, `report.py` prints it.
"""

WHAT_IT_IS_NOT = (
    "an IP network with InfiniBand's tables: no credits, no head-of-line blocking, no virtual "
    "lanes, no RDMA"
)
