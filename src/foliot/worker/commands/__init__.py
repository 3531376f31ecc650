"""Commands: programs that a worker runs for tenants, as if each were hostile."""
