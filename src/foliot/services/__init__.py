"""One use case or one loop per file; none calls another."""
