"""Makes README's picture of the page of `assess`: `python -m tests.worlds.assess_picture`."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/images/assess-page.png"
SIZE = 1100, 620


def readme_command() -> str:
    """README's `assess` command."""
    (given,) = re.findall("^sar-agent (assess .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return str(given)


def make_page(folder: Path) -> None:
    """README's page in `folder`."""
    command = [sys.executable, "-c", "from sar_agent.cli import main; main()"]
    words = [*readme_command().split(), "--out", str(folder)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def main() -> None:
    from tests.worlds.live.browser import chromium

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_page(folder)
        with chromium(folder / "browser", *SIZE) as browser:
            browser.get((folder / "index.html").as_uri())
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {})
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
