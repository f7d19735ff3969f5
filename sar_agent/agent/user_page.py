"""`explain --user-page`: what is known of a job, as one page for the person who submitted it."""

from __future__ import annotations

from html import escape

from sar_agent.agent.explain import JobExplanation
from sar_agent.agent.explain_ended import EndedJob

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Job {job}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }}
ul {{ padding-left: 1.2rem; }}
footer {{ opacity: 0.75; font-size: 0.9rem; }}
</style>
<h1>Did others slow job {job}?</h1>
{body}
<footer><p>A <em>load</em> of 1 is the speed of a link while all jobs send at once; above 1,
messages wait. Jobs share links only between switches. Nothing here was measured in the program
itself, and it may have waited for its files, its own hosts or itself.</p></footer>
</html>
"""


def user_page(report: JobExplanation | EndedJob) -> str:
    """The page: what `explain` prints, which names no other users unless the site allows it."""
    parts, inside = list[str](), False
    for line in report.words().splitlines():
        item = line.startswith("  ")
        if item != inside:
            parts.append("<ul>" if item else "</ul>")
        inside = item
        tag = "li" if item else "p"
        parts.append(f"<{tag}>{escape(line.strip())}</{tag}>")
    return _PAGE.format(job=escape(report.job), body="\n".join([*parts, "</ul>" * inside]))
