"""Foliot beside its peers: the same work, the same machine, the same run."""
