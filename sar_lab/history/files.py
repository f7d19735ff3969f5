"""Reads `--history` in any supported format, which is recognised by the content."""

from __future__ import annotations

import tarfile
from contextlib import suppress
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.util.other_files import other_file
from sar_agent.util.text_files import json_part, read_text
from sar_lab.history.first_seen import read_first_seen
from sar_lab.history.job_history import JobHistory
from sar_lab.history.sacct_json import parse_sacct_json
from sar_lab.history.sacct_text import COMMAND, HEAD, looks_like_sacct, parse_sacct_text
from sar_lab.history.trace_csv import looks_like_trace, parse_trace_csv


def read_history(path: str | Path) -> JobHistory:
    """Reads sacct's text or JSON, a trace `job,start,end,nodelist`, or a folder or tar archive of
    `JOBID.txt`; files may be gzipped. Raises `InputError` with the file and, if known, the line."""
    path = Path(path)
    if _is_of_files(path):
        return read_first_seen(path)
    text = read_text(path)
    if json := json_part(text):
        return parse_sacct_json(json, path)
    first, *more = _first_lines(text)
    if looks_like_trace(first):
        return parse_trace_csv(text, path)
    if "|" in first or any(map(looks_like_sacct, (first, *more))):
        return parse_sacct_text(text, path)
    what = other_file(text)
    raise InputError(
        f"this is {what}, not a job history"
        if what
        else f"the format of this job history is unknown; it begins with {first[:60]!r}",
        file=path,
        line=1,
        remedy=f"save one with: {COMMAND}",
    )


def is_history(path: Path) -> bool:
    """Whether a file records jobs over time rather than at one moment, judged by its beginning;
    False where it cannot be read."""
    try:
        if _is_of_files(path):
            return True
        text = read_text(path)
    except (InputError, OSError):
        return False
    if json_part(text):  # squeue's has job_state
        return '"job_state"' not in text and '"time"' in text
    first = _first_lines(text)
    return looks_like_trace(first[0]) or any(map(looks_like_sacct, first))


def _is_of_files(path: Path) -> bool:
    """Whether it is a folder or a tar archive."""
    with suppress(EOFError):  # a gzip file that is cut short
        return path.is_dir() or (path.is_file() and tarfile.is_tarfile(path))
    return False


def _first_lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line][:HEAD] or [""]
