"""Replays a job history: the routes and measures of each engine at every moment."""
