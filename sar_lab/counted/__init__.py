"""Do counted weights make jobs faster? Programs with phases, beside traffic that Slurm does not
know, on the routes of several engines."""
