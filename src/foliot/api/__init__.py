"""HTTP in, one service call, HTTP out."""
