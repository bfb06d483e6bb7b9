"""Thin scikit-learn shells around summary, sparsity and round."""
