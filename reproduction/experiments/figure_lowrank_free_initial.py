"""Squared error against rounds without an initial batch, low rank."""

from reproduction.cells import Cell
from reproduction.experiments.lowrank import CHOICES, SCALES, convergence, free_cell, free_cells, panel, reference_cells
from reproduction.item import Claim, Item, Panel, Results
from reproduction.profiles import Profile


def _sizes(profile: Profile) -> tuple[int, int]:
    return profile.rank, 3 * profile.rank


def cells(profile: Profile) -> list[Cell]:
    """Two ranks."""
    return free_cells(profile, _sizes(profile)) + reference_cells(profile)


def panels(results: Results, profile: Profile) -> list[Panel]:
    """Against t and against log t."""
    at = profile.times(0, profile.n_rounds_matrix_free)
    return [
        panel(results, f"{scale}, s = {s}", free_cell(scale, s), scale, at, 0, log_x)
        for scale in SCALES
        for s in _sizes(profile)
        for log_x in (False, True)
    ]


def claims(results: Results, profile: Profile) -> list[Claim]:
    """It converges without a batch."""
    return [convergence(panels(results, profile), "without a batch")]


ITEM = Item(
    "figure-lowrank-free-initial",
    "Figure 7: low rank, error against rounds without an initial batch",
    "Matrix sensing from the first row on.",
    cells,
    panels,
    claims,
    choices=CHOICES,
)
