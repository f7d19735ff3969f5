"""What Slurm's hooks tell: heard on a socket or found in a folder, believed, folded, handed on."""
