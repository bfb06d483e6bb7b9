"""What is kept: the set an estimate must lie in, and its projection."""
