"""The loop: look at Slurm and the fabric, decide, plan, install, read back, record."""
