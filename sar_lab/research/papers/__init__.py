"""The papers' tables and figures, one module each: what `sar-lab lab list` lists.

A module with a line PUBLISHED is one of them; `registry.Experiment` describes its contents. Slow
imports are made in its `run`.
"""
