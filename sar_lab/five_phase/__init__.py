"""Replays traces of real five-phase updates on the verified model of the protocol."""
