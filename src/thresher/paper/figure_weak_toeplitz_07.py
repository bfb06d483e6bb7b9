"""Squared error against rounds, weak signals, Toeplitz 0.7."""

from thresher.paper.weak_design import weak_design

ITEM = weak_design("figure-weak-toeplitz-07", "Toeplitz 0.7", 0.7)
