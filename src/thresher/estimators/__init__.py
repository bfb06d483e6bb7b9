"""Thin scikit-learn estimators around summaries, solvers and online rounds."""
