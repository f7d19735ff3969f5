"""The trace format, and the generators that write it."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from sar_agent.errors import InputError
from sar_lab.research.trace.parse import read_trace
from sar_lab.research.trace.program_trace import ProgramPhase, with_drawn_times


def told(phase: ProgramPhase) -> tuple[float, str | None, list[tuple[int, int, float]]]:
    sends = [(a, b, s) for (a, b), s in zip(phase.pairs.tolist(), phase.size, strict=True)]
    return round(phase.compute, 12), phase.key, sends


def test_every_word() -> None:
    trace = read_trace("""
        trace 1   # the format
        job A 4
        start 3us
        grid 2x2
        compute 1ms
        compute 1us
        repeat 2
          request k
          shift -1 2B
          barrier
          done
          repeat 1
            step +x 1KB
            step -y 2KiB
          end
        end
        send 0 0 9
        send 3 1 9
        job B 2
        alltoall 1.5KB
        """)
    a, b = trace.programs
    assert (a.job, a.ranks, a.start, b.job, b.ranks, b.start) == ("A", 4, 3e-6, "B", 2, 0)
    left = [(0, 3, 2), (1, 0, 2), (2, 1, 2), (3, 2, 2)]
    east = [(0, 2, 1024), (1, 3, 1024), (2, 0, 1024), (3, 1, 1024)]
    south = [(0, 1, 2048), (1, 0, 2048), (2, 3, 2048), (3, 2, 2048)]
    assert [told(phase) for phase in a.phases] == [
        (0.001001, None, []),
        *[(0, "k", left), (0, None, east + south)] * 2,
        (0, None, [(3, 1, 9)]),
    ]
    assert [told(phase) for phase in b.phases] == [(0, None, [(0, 1, 1536), (1, 0, 1536)])]


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("jump 3", 3, "'jump' is not a statement"),
        ("job A 3", 3, "defined twice"),
        ("job B", 3, "`job NAME RANKS`"),
        ("job B 0", 3, "'0' ranks"),
        ("send 0 4 1KB", 3, "job A has 0 … 3"),
        ("send 0 1", 3, "`send 0 1 64KB`"),
        ("send 0 1 big", 3, "'big' is not a size"),
        ("send 0 1 0", 3, "'0' is not a size"),
        ("shift x 1KB", 3, "distance"),
        ("step +x 1KB", 3, "without a grid"),
        ("grid 2x2\nstep +z 1KB", 4, "+x -x +y -y"),
        ("grid 2x3", 3, "does not fit 4 ranks"),
        ("grid 2xx", 3, "sizes"),
        ("compute fast", 3, "is not a time"),
        ("compute 1us std", 3, "may `std` and one"),
        ("compute 1us dev 1us", 3, "may `std` and one"),
        ("compute 1us std much", 3, "is not a time"),
        ("compute 1us std 1us", 3, "may be below 0"),
        ("send 0 1 1KB\ncompute 1us", 4, "while messages are being sent"),
        ("send 0 1 1KB\nrequest k", 4, "while messages are being sent"),
        ("request k\nsend 0 1 1KB\ndone", 5, "while messages are being sent"),
        ("request", 3, "one key"),
        ("done", 3, "without a request"),
        ("barrier now", 3, "takes no argument"),
        ("alltoall", 3, "names a size"),
        ("compute 1us\nstart 1us", 4, "below `job`"),
        ("end", 3, "without `repeat`"),
        ("repeat 3\nbarrier", 3, "without `end`"),
        ("repeat 3\nrequest k\nend", 5, "`done` before `end`"),
        ("repeat 0", 3, "'0' repeats"),
        ("repeat 999999\nrepeat 2\ncompute 1us\nend\nend", 7, "repeat less"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, body: str, line: int, word: str) -> None:
    path = tmp_path / "x.trace"
    path.write_text(f"trace 1\njob A 4\n{body}\n")
    with pytest.raises(InputError, match=re.escape(word)) as caught:
        read_trace(path)
    assert (caught.value.file, caught.value.line) == (str(path), line)


@pytest.mark.parametrize(
    ("text", "word"),
    [("job A 2\n", "`trace 1` first"), ("trace 1\n", "no job"), ("trace 1\nend\n", "first job")],
)
def test_malformed_traces_are_refused(text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_trace(text)


def test_a_computation_with_a_standard_deviation_is_drawn_anew_in_each_repeat() -> None:
    trace = read_trace("""
        trace 1
        job A 2
        compute 7us
        send 0 1 1KB
        barrier
        repeat 2000
          compute 60us std 20us
          compute 40us std 15us  # together 100us std 25us
          send 0 1 1KB
        end
        job B 2
        compute 100us std 25us
        """)
    drawn = with_drawn_times(trace, 3)
    fixed, *times = (1e6 * phase.compute for phase in drawn.programs[0].phases)
    assert fixed == pytest.approx(7)
    assert mean(times) == pytest.approx(100, abs=2) and stdev(times) == pytest.approx(25, abs=1)
    assert 100 - 43.31 < min(times) < 60 < 140 < max(times) < 100 + 43.31
    assert 1e6 * drawn.programs[1].phases[0].compute not in times  # each job draws its own
    again, other = (with_drawn_times(trace, seed).programs[0].phases[1] for seed in (3, 4))
    assert again.compute == drawn.programs[0].phases[1].compute != other.compute
