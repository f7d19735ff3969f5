"""What Prometheus scrapes from the agent."""
