"""`sar-agent demo`: oblivious and scheduling-aware routes on one fabric, as numbers and a page.

Nothing here touches a network: the fabric is generated (or read from a file), the engines, the
checks and the measures are the ones that the agent uses.
"""

from sar_lab.demo.demo_run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
