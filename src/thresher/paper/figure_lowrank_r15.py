"""Squared error against rounds, low rank, with three times the rank of the truth."""

from thresher.paper.lowrank_rank import lowrank_rank

ITEM = lowrank_rank("figure-lowrank-r15", "three times that of the truth", lambda profile: 3 * profile.rank)
