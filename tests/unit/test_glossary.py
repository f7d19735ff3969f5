"""The glossary stays short, explains a term once, and explains only terms that are in use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ENTRY = re.compile(r"^- \*\*(.+?)\*\*(?=[ :])(.*?)(?=^- |^#|\Z)", re.M | re.S)
ENTRIES = ENTRY.findall(GLOSSARY.read_text())
TERMS = [term.replace("\\*", "*") for term, _ in ENTRIES]


def plain(text: str) -> str:
    """Small letters, and one blank for line ends, hyphens and underscores."""
    return re.sub(r"[\s_-]+", " ", text.replace("\\*", "*")).lower()


@pytest.fixture(scope="module")
def everything_else() -> str:
    files = [
        *(ROOT / "sar_agent").rglob("*.py"),
        *(page for page in (ROOT / "docs").rglob("*.md") if page != GLOSSARY),
    ]
    return plain(" ".join(file.read_text() for file in files))


def test_there_are_at_most_40_terms_and_each_is_explained_once() -> None:
    assert 30 <= len(TERMS) <= 40
    assert len({term.lower() for term in TERMS}) == len(TERMS)


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_used_in_the_code_or_on_a_page(term: str, everything_else: str) -> None:
    assert re.search(rf"\b{re.escape(plain(term))}", everything_else), term


@pytest.mark.parametrize(("term", "text"), ENTRIES, ids=[term for term, _ in ENTRIES])
def test_an_explanation_has_one_to_three_sentences(term: str, text: str) -> None:
    sentences = re.findall(r"\.(?:\s|$)", text)
    assert 1 <= len(sentences) <= 3, text
