"""MPI-like programs as traces, generators of them, and how long they take."""

from sar_lab.trace.model import Phase, Program, Trace

__all__ = ["Phase", "Program", "Trace"]
