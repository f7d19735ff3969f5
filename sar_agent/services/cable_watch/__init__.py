"""Watches cables: which are bad now, since when, and which running jobs they hurt."""
