"""Real daemons on one machine, for live tests and `sar-lab emulate --live`; each module runs one.

Every class is a context manager that cleans up after itself, listens on loopback or in a network of
its own only, and keeps its files in its own scratch directory.
"""
