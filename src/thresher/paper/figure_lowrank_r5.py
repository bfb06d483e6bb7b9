"""Squared error against rounds, low rank, with the rank of the truth."""

from thresher.paper.lowrank_rank import lowrank_rank

ITEM = lowrank_rank("figure-lowrank-r5", "that of the truth", lambda profile: profile.rank)
