"""Slurm's texts and programs: host lists, running jobs, topology files."""
