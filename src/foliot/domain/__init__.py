"""Pure decisions: what a job means, when it fires, what may follow what. No clock, no dice, no input or output."""
