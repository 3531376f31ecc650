"""Histories made up from a seed, to prove the checker: clean ones must pass, planted faults must be found."""

from chaos.synthetic.clean import clean

__all__ = ["clean"]
