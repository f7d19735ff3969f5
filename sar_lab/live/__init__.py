"""Real daemons on one machine, for live tests and `make demo-live`; each module runs one of them.

Every class is a context manager that cleans up after itself, listens on loopback only, and keeps
its files in its own scratch directory.
"""
