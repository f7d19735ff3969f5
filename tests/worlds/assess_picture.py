"""The picture of the page of `assess` in README: `python -m tests.worlds.assess_picture` makes it.

It holds the words that it shows as a text chunk, so that a test can compare them with what the
command makes today, without a browser and without its fonts."""

from __future__ import annotations

import base64
import html
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/images/assess-page.png"
SIZE = 1100, 620
WORDS = "words"


def readme_command() -> str:
    """README's `assess` command."""
    (given,) = re.findall("^sar-agent (assess .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return str(given)


def make_page(folder: Path) -> str:
    """README's page in `folder`; returns what the command printed."""
    command = [sys.executable, "-c", "from sar_agent.cli import main; main()"]
    words = [*readme_command().split(), "--out", str(folder)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown_words(folder: Path) -> str:
    """The words of the page's first screen: the sentence, its reason and the tiles."""
    page = (folder / "index.html").read_text()
    first = page[page.index("<h1") : page.index("</div>", page.index('class="cards"'))]
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", first)).split())


def main() -> None:
    from tests.worlds.live.browser import chromium

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_page(folder)
        with chromium(folder / "browser", *SIZE) as browser:
            browser.get((folder / "index.html").as_uri())
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {})
        words = PngInfo()
        words.add_itxt(WORDS, shown_words(folder))
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(64).save(PICTURE, pnginfo=words, optimize=True)


if __name__ == "__main__":
    main()
