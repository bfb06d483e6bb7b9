"""Squared error against rounds, weak signals, Toeplitz 0.3."""

from thresher.paper.weak_design import weak_design

ITEM = weak_design("figure-weak-toeplitz-03", "Toeplitz 0.3", 0.3)
