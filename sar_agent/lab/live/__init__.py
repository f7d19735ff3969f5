"""Real daemons on one machine, each under its own folder: the live tests and `make demo-live`."""
