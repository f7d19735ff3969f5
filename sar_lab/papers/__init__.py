"""The papers' tables and figures, one module each: what `sar-agent lab list` lists.

A module with a NAME is one of them, see `registry.Experiment`. Whatever takes long to import is
imported in its `run`.
"""
