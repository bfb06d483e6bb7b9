"""Squared error against rounds, weak signals, independent columns."""

from thresher.paper.weak_design import weak_design

ITEM = weak_design("figure-weak-independent", "independent columns", 0.0)
