"""Squared error against rounds, low rank: one figure for each projection rank."""

from reproduction.cells import Cell
from reproduction.experiments.lowrank import (
    CHOICES,
    SCALES,
    T0,
    batch_cell,
    batch_cells,
    convergence,
    panel,
    reference_cells,
)
from reproduction.item import Claim, Item, Panel, Results, verdict
from reproduction.profiles import STEPS, Profile
from reproduction.trends import ABOUT_INVERSE, is_inverse, is_inverse_or_faster, listed, slope


def _figure(name: str, of: str, multiple: int) -> Item:
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
        found = []
        for drawn in panels(results, profile)[::2]:
            lines = {K: drawn.lines[f"OHT K={K}"] for K in STEPS}
            found.append(convergence(drawn, "for K = 1, 5, 10, 20"))
            several = [lines[K] for K in STEPS[1:]]
            judged = verdict(all(map(is_inverse, several)))
            if judged != "holds" and all(map(is_inverse_or_faster, several)):
                judged = "holds with a change"
            found.append(
                Claim(
                    f"{drawn.title}: the slope of log error in log t is about -1 for K >= 5.",
                    judged,
                    "Slope over the last two thirds of the rounds: "
                    f"{listed({K: slope(line) for K, line in lines.items()})}."
                    + (" The change: errors fall faster." if judged == "holds with a change" else ""),
                    f"{ABOUT_INVERSE}; a change if steeper",
                )
            )
        return found

    return Item(
        name,
        f"Low rank: error against rounds, projection rank {of}",
        f"Matrix sensing with a batch of {T0} rows, then T rounds.",
        cells,
        panels,
        claims,
        choices=CHOICES,
    )


ITEMS = (
    _figure("figure-lowrank-r5", "that of the truth", 1),
    _figure("figure-lowrank-r15", "three times that of the truth", 3),
)
