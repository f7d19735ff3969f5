"""Made-up jobs: a published workload model, a scheduler that fragments, stand-ins for two machines.

Always labelled synthetic. Models are tuned to marks that sar-2016 states of its machines, never to
what an engine makes of them.
"""
