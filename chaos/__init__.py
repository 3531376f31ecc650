"""Foliot's own Jepsen: a driver, a nemesis, a ledger of side effects, and a checker that trusts none of them alone."""
