"""Files, locks, clocks, programs and extension points: utilities that every room uses."""
