"""OpenSM with our plugin: the client of the plugin's socket, and installing a routes file by it."""
