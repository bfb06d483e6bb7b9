"""Error against rounds for one projection rank."""

from collections.abc import Callable

from thresher.paper.cells import Cell
from thresher.paper.item import Claim, Item, Panel, Results, verdict
from thresher.paper.lowrank import CHOICES, SCALES, T0, batch_cell, batch_cells, beyond_cells, convergence, panel
from thresher.paper.profiles import STEPS, Profile
from thresher.paper.trends import ABOUT_INVERSE, is_inverse, is_inverse_or_faster, listed, slope


def lowrank_rank(name: str, of: str, rank: Callable[[Profile], int]) -> Item:
    """The figure for one rank, given for a profile."""

    def cells(profile: Profile) -> list[Cell]:
        return batch_cells(profile, (rank(profile),)) + beyond_cells(profile)

    def panels(results: Results, profile: Profile) -> list[Panel]:
        at = profile.times(T0, profile.n_rounds)
        return [
            panel(results, f"{scale}, s = {rank(profile)}", batch_cell(scale, rank(profile)), scale, at, T0, log_x)
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
