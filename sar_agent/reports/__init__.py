"""Answers about cables, links and failures from dumps: nothing is installed.

A report reads a `SiteDumps` (fabric, jobs, routes, counters), answers one question, and has
`words()` for people and `json()` for programs.
"""
