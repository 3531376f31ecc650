"""Measurements that need more than Foliot itself."""
