"""What jobs send: their endpoints, the order of their ranks, and the phases of what they run.

Everything that weighs tables asks here: engines, measures, reports and pages.
"""
