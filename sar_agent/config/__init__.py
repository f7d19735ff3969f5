"""The agent's settings: the TOML file as one typed model, a file for each group of sections."""
