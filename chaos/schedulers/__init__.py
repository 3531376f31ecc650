"""Three schedulers that are killed and stopped every few seconds: every instant of every job once, or explained."""
