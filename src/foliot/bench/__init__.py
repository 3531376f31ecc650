"""Measures the real thing beside the raw floor."""
