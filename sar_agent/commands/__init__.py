"""The commands, grouped by what they need; each module has `register(app)`.

Heavy imports (numba, matplotlib) stay inside the functions, so that `--help` answers at once.
"""
