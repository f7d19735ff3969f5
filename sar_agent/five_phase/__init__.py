"""The five-phase update (sar-2016, Section 3.3), the agent's side: connections wait on LID offset 1
while the tables of offset 0 are replaced.

`words` names what is said, `machine` decides (no clock, disk or socket), `saved` is what a restart
must know, `coordinator` holds the three together and is driven by a pass of the agent.
"""
