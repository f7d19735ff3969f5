"""The agent's part of the five-phase update (sar-2016, Section 3.3): connections wait on LID offset
1 while the tables of offset 0 are replaced.

`messages` defines messages and actions, `protocol` decides (without clock, disk or socket),
`storage` keeps what a restart must know, `coordinator` combines the three, and `driver` carries out
the actions in a pass of the agent.
"""
