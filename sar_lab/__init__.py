"""The laboratory: assessments, simulations, the papers' tables, and daemons for tests. A site does
not need it to run the agent."""
