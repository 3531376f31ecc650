"""A process of its own for one attempt, and a guard that outlives whoever supervises it."""
