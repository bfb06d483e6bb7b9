"""Choosing the size of a model from the data."""
