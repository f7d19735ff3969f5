"""The commands of `sar-agent`: a module for each group, a function for each command (`cli.py` lists
them).

Heavy imports (numpy, numba, pydantic) are inside the functions, so that `--help` answers at once.
"""
