"""Scheduling-aware InfiniBand routes for Slurm clusters."""

__version__ = "0.2.0"
