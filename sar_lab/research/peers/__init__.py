"""Studies of published methods beside ours: what `sar_lab/research/pages/peers.md` shows."""
