"""Messages about jobs, from Slurm's hooks: received, authenticated, and collected for the agent."""
