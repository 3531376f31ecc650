"""What every process needs, ignorant of jobs."""
