"""Files that people give by mistake: what other programs print, told by how it looks."""

from __future__ import annotations

import re

_KNOWN = tuple(
    (what, re.compile(seen, re.MULTILINE))
    for what, seen in (
        (
            "an error of ibnetdiscover",
            r"^(?:ibnetdiscover: |ibwarn: |.*\b(?:mad_rpc_open_port|umad_(?:init|open_port)|"
            r"can't open UMAD port)\b)",
        ),
        ("an error of Slurm", r"^(?:slurm_load_\w+|squeue:|sinfo:|scontrol:|sacct:) error:"),
        ("an error of a shell", r"^\S+: (?:.*: )?command not found$"),
        ("iblinkinfo's output", r"^(?:CA|Switch|Router): .*:$[\s\S]*==>"),
        ("ibswitches' or ibhosts' output", r"^(?:Ca|Switch|Router)\s*: 0x[0-9a-f]+ ports \d+ "),
        ("ibstat's output", r"^CA '[^']*'$"),
        ("a dump of forwarding tables", r"^Unicast lids \["),
        ("Slurm's topology.conf", r"^\s*SwitchName="),
        ("scontrol's list of nodes", r"^NodeName=\S+ "),
        ("scontrol's list of jobs", r"^JobId=\d+ "),
        ("sinfo's output", r"^\s*(?:PARTITION +AVAIL|NODELIST +NODES)\b"),
        ("sacct's table, which cuts columns short", r"^\s*JobID +JobName\b"),
        ("squeue's default table, which cuts columns short", r"^\s*JOBID +PARTITION\b"),
        ("squeue's output", r"^\d+[^|\n]*\|(?:RUNNING|PENDING|COMPLETING|[A-Z_]+)\|"),
        (
            "squeue's columns with blanks between them",
            r"^\s*\d+\S* +(?:RUNNING|PENDING|COMPLETING|SUSPENDED|R|PD|CG) +\S",
        ),
    )
)


def other_file(text: str) -> str:
    """What `text` is, in words; empty if that is not known. The first kind that fits counts."""
    return next((what for what, seen in _KNOWN if seen.search(text)), "")
