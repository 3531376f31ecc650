-- deaths is a mark now (domain/suspicion.py): -1 means that a worker died which held the run, and nobody knows whether it
-- had begun. `crashes`: how often the run killed its own process, running alone; null, and so free, for nearly all runs.
ALTER TABLE run ADD COLUMN crashes smallint;
