"""MPI-like programs as traces, generators of them, and how long they take."""

from sar_lab.trace.program_trace import Program, ProgramPhase, ProgramTrace

__all__ = ["Program", "ProgramPhase", "ProgramTrace"]
