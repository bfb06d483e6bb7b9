"""Compiled functions on bare arrays: no classes with behaviour, no validation."""
