"""Files, locks, clocks and other people's programs: what every room needs and no room is about."""
