"""Squared error against rounds, low rank: one figure for each projection rank."""

from reproduction.cells import Cell
from reproduction.experiments.lowrank import (
    CHOICES,
    SCALES,
    T0,
    batch_cell,
    batch_cells,
    by_scale,
    convergence,
    panel,
    reference_cells,
)
from reproduction.item import Case, Claim, Item, Panel, Results, partly, together
from reproduction.profiles import STEPS, Profile
from reproduction.trends import ABOUT_INVERSE, is_inverse, listed, slope


def _figure(name: str, number: str, of: str, multiple: int) -> Item:
    """The figure for a multiple of the rank of the truth."""

    def cells(profile: Profile) -> list[Cell]:
        return batch_cells(profile, (multiple * profile.rank,)) + reference_cells(profile)

    def panels(results: Results, profile: Profile) -> list[Panel]:
        at, s = profile.times(T0, profile.n_rounds), multiple * profile.rank
        return [
            panel(results, f"{scale}, s = {s}", batch_cell(scale, s), scale, at, T0, log_x)
            for scale in SCALES
            for log_x in (False, True)
        ]

    def claims(results: Results, profile: Profile) -> list[Claim]:
        every = panels(results, profile)
        cases = {}
        for scale, (drawn,) in by_scale(every).items():
            lines = {K: drawn.lines[f"OHT K={K}"] for K in STEPS}
            n_good = sum(is_inverse(lines[K]) for K in STEPS[1:])
            cases[scale] = Case(
                partly(n_good, len(STEPS) - 1), f"{listed({K: slope(line) for K, line in lines.items()})}."
            )
        return [
            convergence(every, "for K = 1, 5, 10, 20"),
            together(
                "The slope of log error in log t is about -1 for K >= 5.",
                cases,
                f"{ABOUT_INVERSE} over the last two thirds of the rounds, for K = 5, 10, 20; a change if for two",
                first_decides=True,
            ),
        ]

    return Item(
        name,
        f"{number}: low rank, error against rounds, projection rank {of}",
        f"Matrix sensing with a batch of {T0} rows, then T rounds.",
        cells,
        panels,
        claims,
        choices=CHOICES,
    )


ITEMS = (
    _figure("figure-lowrank-r5", "Figure 5", "that of the truth", 1),
    _figure("figure-lowrank-r15", "Figure 6", "three times that of the truth", 3),
)
