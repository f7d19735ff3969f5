"""`python -m sar_lab.five_phase TRACE …`: could the model have done what a run did?

Exit code 0: all of it; 1: not this line; 2: this is no trace, or spin is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sar_agent.errors import SarError
from sar_lab.five_phase.replay import read_trace, replay


def main(files: list[str]) -> int:
    """`files` are those of one run: the coordinator's and its subscribers'."""
    try:
        verdict = replay(read_trace({file: Path(file).read_text() for file in files}))
    except (SarError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if verdict.refused is None:
        print(f"the model can do all {verdict.events} events")
        return 0
    print(f"the model can do {verdict.accepted} of {verdict.events} events, and not then: ", end="")
    print(dict(verdict.refused))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
