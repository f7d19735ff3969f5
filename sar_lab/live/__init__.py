"""Real daemons on one machine, for live tests and `make demo-live`: each module runs one of them.

Every class is a context manager that leaves nothing behind, listens on loopback only, and keeps
its files in a scratch directory of its own.
"""
