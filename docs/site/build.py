"""Builds the static site: python docs/site/build.py FOLDER makes FOLDER/site/index.html.

mkdocs reads one folder, and our pages are in several. So the pages are copied as they are in the
repository, with every file that they link to, and links need no change. Any broken link or anchor
is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def pages() -> list[Path]:
    """Every Markdown page of the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *(ROOT / "docs").rglob("*.md")]
    found += ROOT.glob("libs/*/*.md")
    found += (ROOT / "sar_lab/research/pages").glob("*.md")
    return sorted({page for page in found if ".venv" not in page.parts and "out" not in page.parts})


def copy_pages(folder: Path) -> None:
    """Copies all pages, and the files that they link to."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        place = folder / page.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LINK.sub(partial(_without_folder, page), text))
        for _, target in LINK.findall(text):
            linked = (page.parent / target).resolve()
            if "://" not in target and linked.is_file() and linked.suffix != ".md":
                copy = folder / linked.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(linked, copy)


def _without_folder(page: Path, match: re.Match[str]) -> str:
    """A link to a folder, which GitHub shows as a list of files, becomes its text."""
    if "://" not in match[2] and (page.parent / match[2]).is_dir():
        return match[1]
    return match[0]


def build(folder: Path) -> None:
    """Writes FOLDER/site. Ends the program with mkdocs's warnings if a link is broken."""
    if (folder / "pages").exists():
        shutil.rmtree(folder / "pages")
    copy_pages(folder / "pages")
    shutil.copyfile(Path(__file__).with_name("site.css"), folder / "pages" / "site.css")
    for name in ("mkdocs.yml", "site_slug.py"):
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    build(target.resolve())
    print(f"Open {target.resolve() / 'site' / 'index.html'}")
