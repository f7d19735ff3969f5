"""Files that hold routes: our routes file, OpenSM's dumps, and what other tools read."""
