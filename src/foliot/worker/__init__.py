"""Claim, run, settle: the process that runs handlers."""
