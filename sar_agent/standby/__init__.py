"""Two agents, each beside an OpenSM: the one whose OpenSM is the master installs, the other one
keeps a copy of its state and takes over from it."""
