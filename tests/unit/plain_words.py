"""The words that no text for users may contain, each with what a native engineer writes instead."""

from __future__ import annotations

BANNED = {
    r"\b(held|holds?|holding)( \S+)? against\b": "compared with",
    r"\bhang(s|ing)? on\b": "depends on",
    r"\b(is|are) none\b(?!,)": "there is no …; does not exist",
    r"\banew\b": "again; from scratch",
    r"\bwho(m|so)?ever\b": "a noun: the user, the process",
    r"\b(is|are) said\b": "is logged; is reported",
    r"\b(is|are) wanted\b": "is required",
    r"(^|[.;:|] )likewise\b": "a full sentence",
    r"\bsee above\b": "a link, or the fact again",
    r"\bbetter(s|ed|ing)\b|\b(can|to) better\b": "improve",
    r"\bmend(s|ed|ing)?\b": "repair; fix",
    r"\btold by\b": "determined from; recognised by",
    r"\bin whose way\b": "a noun and a verb: whose links it shares",
    r"\bsays? not\b": "does not say",
    r"\basks? nothing of\b|\bnothing is asked of\b": "needs no change to; transparent to",
    r"\bstands? (in(?! for)|at|under|beside|there)\b": "is in",
    r"\bcome what may\b": "in every case",
    r"\b(door|desk|nerves|ears|tally|tallies)\b": "server, requests, timing, intake, counters",
    r"\b(takes?|took|taken|taking) back\b": "reverts",
    r"\bwhat there is\b": "a noun: the engines, the fabric",
}
"""Regular expression, matched without regard to case and across line ends: the replacement."""

BARE_RELATIVE = r"(Who|What) (?!\S*\?)"
"""A sentence must not begin with a bare relative clause as its subject, unless it is a question."""
