"""Traces of real five-phase updates, replayed against the model that was proved."""
