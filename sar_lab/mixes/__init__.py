"""Synthetic jobs: a published workload model, a scheduler that fragments, stand-ins for two
machines.

The jobs are always labelled synthetic. Models are fitted to properties that sar-2016 states of its
machines, never to the results of an engine.
"""
