"""Squared error against rounds, weak signals, Toeplitz 0.5."""

from thresher.paper.weak_design import weak_design

ITEM = weak_design("figure-weak-toeplitz-05", "Toeplitz 0.5", 0.5)
