"""What Prometheus can scrape from the agent."""
