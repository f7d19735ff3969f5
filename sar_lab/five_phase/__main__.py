"""`python -m sar_lab.five_phase MODEL TRACE …`: compare a run with the model of the protocol.

MODEL is the folder `libs/migrate/model` of the source tree. Exit code 0: the model can do all
events; 1: it cannot do the event that is printed; 2: a file is no trace, or spin or the model is
missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sar_agent.errors import SarError
from sar_lab.five_phase.model_replay import read_trace, replay


def main(arguments: list[str]) -> int:
    """`arguments`: the model's folder, then the traces of one run (coordinator and subscribers)."""
    if len(arguments) < 2:
        print("usage: python -m sar_lab.five_phase MODEL TRACE ...", file=sys.stderr)
        return 2
    model, *files = arguments
    try:
        lines = read_trace({file: Path(file).read_text() for file in files})
        result = replay(lines, Path(model).absolute())
    except (SarError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if result.refused is None:
        print(f"the model can do all {result.events} events")
        return 0
    print(f"the model can do {result.accepted} of {result.events} events, but not the next one:")
    print(dict(result.refused))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
