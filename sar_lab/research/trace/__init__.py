"""Traces of MPI-like programs: the format, generators, and the time that they take."""

from sar_lab.research.trace.program_trace import Program, ProgramPhase, ProgramTrace

__all__ = ["Program", "ProgramPhase", "ProgramTrace"]
