"""Texts for users are plain English: none contains a word of `plain_words.BANNED`.

Scanned are string literals of both packages that are not docstrings, the pages, and what a site
installs from `deploy/`. A finding is reported as `file:line: the words -> what to write instead`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.plain_words import BANNED, BARE_RELATIVE

ROOT = Path(__file__).parents[2]
PACKAGES = ("sar_agent", "sar_lab")
PAGES = sorted(
    [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "ARCHITECTURE.md"))]
)
DEPLOYED = sorted(
    path
    for path in (ROOT / "deploy").rglob("*")
    if path.suffix in {".toml", ".yml", ".json", ".service"}
)
PATTERNS = {
    re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE | re.MULTILINE): instead
    for pattern, instead in BANNED.items()
}
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] |\n\d+\. ")
NOT_PROSE = re.compile(r"^(#|\||```|<!--|\s*[-*] \[)")


def banned_words(text: str) -> Iterator[tuple[int, str, str]]:
    """(line counted from 0, the words as they are written, what to write instead)."""
    for pattern, instead in PATTERNS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), " ".join(match[0].split()), instead


def bare_relatives(text: str) -> Iterator[tuple[int, str, str]]:
    """Sentences that begin with Who or What and are no question; headings and tables are none."""
    start = 0
    for sentence in SENTENCE_END.split(text):
        start = text.index(sentence, start)
        words = sentence.strip()
        if re.match(BARE_RELATIVE, words) and not words.rstrip("*").endswith("?"):
            yield text.count("\n", 0, start), " ".join(words.split())[:40], "a noun as the subject"


def without_markup(page: str) -> str:
    """The page with headings, tables and fences blanked, line for line."""
    fenced, lines = False, []
    for line in page.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append("" if fenced or fence or NOT_PROSE.match(line) else line)
        fenced ^= fence
    return "\n".join(lines)


def text_of(node: ast.expr) -> str | None:
    """What a literal says, with {} for the values of an f-string; None for other nodes."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        return "".join(str(part) for part in parts)
    return None


def literals(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each string literal that is an argument, a value or a part of one: strings
    that are statements by themselves are documentation."""
    tree = ast.parse(source)
    documentation = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    inside = {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in documentation | inside:
            text = text_of(node)
            if text is not None:
                yield node.lineno, text


def findings_in_source(path: Path) -> list[str]:
    name = path.relative_to(ROOT)
    return [
        f"{name}:{line + offset}: {words} -> {instead}"
        for line, text in literals(path.read_text())
        for offset, words, instead in [*banned_words(text), *bare_relatives(text)]
    ]


def findings_in_page(path: Path) -> list[str]:
    text = path.read_text()
    found = [*banned_words(text)]
    if path.suffix == ".md":
        found += bare_relatives(without_markup(text))
    return [
        f"{path.relative_to(ROOT)}:{line + 1}: {words} -> {instead}"
        for line, words, instead in found
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_strings_for_users_are_plain(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert len(files) > 50, "nothing was scanned"
    findings = [finding for file in files for finding in findings_in_source(file)]
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("path", [*PAGES, *DEPLOYED], ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_and_deployed_files_are_plain(path: Path) -> None:
    findings = findings_in_page(path)
    assert not findings, "\n" + "\n".join(findings)


EXAMPLES = [
    "Plans held against the routes.",
    "It holds them\nagainst a recomputation.",
    "This hangs on the cables.",
    "there are none here",
    "It is computed anew.",
    "whoever asks",
    "the error is said once",
    "an absolute path is wanted",
    "Refused. Likewise the next",
    "See above.",
    "it betters them in place",
    "no routes can better that",
    "then mend Slurm",
    "trees told by their cabling",
    "in whose way it is",
    "'none' says not who",
    "this asks nothing of hosts",
    "the limit stands in the file",
    "it goes on, come what may",
    "message at the door",
    "it takes back the change",
    "list what there is",
]


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_each_of_these_sentences_is_found(sentence: str) -> None:
    assert list(banned_words(sentence)), sentence


def test_each_pattern_has_an_example() -> None:
    for pattern in PATTERNS:
        assert any(pattern.search(sentence) for sentence in EXAMPLES), pattern.pattern
    assert len(BANNED) <= 20


def test_a_sentence_with_a_bare_relative_is_found_and_a_question_is_not() -> None:
    assert list(bare_relatives("Fine. What was read is kept."))
    assert list(bare_relatives("Fine.\n\nWho subscribes late is refused."))
    assert not list(bare_relatives("What would my cluster gain? It depends. It says who is late."))
    assert not list(bare_relatives(without_markup("# What was read\n\n| What it is |\n")))


def test_plain_sentences_pass() -> None:
    text = (
        "Plans are compared with the routes in force. A stand-in for a network stands in for it. "
        "The value depends on the cables; sar-plus gives better routes, and nothing hangs."
    )
    assert not [*banned_words(text), *bare_relatives(text)]


def test_strings_count_and_docstrings_do_not(tmp_path: Path) -> None:
    source = '"""Made anew."""\n\n\ndef f(n):\n    """Anew."""\n    return f"made {n} anew"\n'
    assert list(literals(source)) == [(6, "made {} anew")]
