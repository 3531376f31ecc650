"""Foliot under a virtual clock: real services, real SQL, a real database; time, chance and the network from a seed."""
