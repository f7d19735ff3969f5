"""Studies of published methods beside ours: what `docs/research/peers.md` shows."""
