"""Squared error against rounds, weak signals: one figure for each correlation of the columns."""

from reproduction.cells import Cell
from reproduction.experiments.against_rounds import LABELS, batch_cells, batch_panels, last
from reproduction.item import Claim, Item, Panel, Results, verdict
from reproduction.profiles import Profile


def _figure(name: str, title: str, rho: float) -> Item:
    """The figure of a Toeplitz design; with rho = 0 columns are independent."""

    def cells(profile: Profile) -> list[Cell]:
        return batch_cells(profile, name, profile.sparse_design(correlation=rho))

    def panels(results: Results, profile: Profile) -> list[Panel]:
        return batch_panels(results, profile, name)

    def claims(results: Results, profile: Profile) -> list[Claim]:
        found = []
        for panel in panels(results, profile):
            ends = last(panel.lines, LABELS)
            ours = max(end for label, end in ends.items() if label.startswith("OHT"))
            theirs = min(end for label, end in ends.items() if label.startswith("OS_LASSO"))
            found.append(
                Claim(
                    f"{title}, {panel.title}: Algorithm 1 beats OS_LASSO with any K.",
                    verdict(ours < theirs),
                    "After the last round: " + ", ".join(f"{label} {end:.3g}" for label, end in ends.items()) + ".",
                    "the largest median of Algorithm 1 is below the smallest of OS_LASSO",
                )
            )
        return found

    return Item(
        name,
        f"Error against rounds: weak signals, {title}",
        "Batches of 100 and 500 rows, then T rounds; s = 50.",
        cells,
        panels,
        claims,
    )


ITEMS = (
    _figure("figure-weak-independent", "independent columns", 0.0),
    _figure("figure-weak-toeplitz-03", "Toeplitz 0.3", 0.3),
    _figure("figure-weak-toeplitz-05", "Toeplitz 0.5", 0.5),
    _figure("figure-weak-toeplitz-07", "Toeplitz 0.7", 0.7),
)
