"""One archive of an agent's state, which the agent of a second OpenSM gets (docs/ha.md)."""
