"""Squared error against rounds, weak signals: one figure for each correlation of the columns."""

from dataclasses import replace

from reproduction.cells import Cell
from reproduction.experiments.against_rounds import LABELS, batch_cells, batch_panels, last
from reproduction.item import Case, Claim, Item, Panel, Results, together, verdict
from reproduction.profiles import Profile


def _figure(name: str, number: str, title: str, rho: float, readings: dict[str, float]) -> Item:
    """The figure of a Toeplitz design; with rho = 0 columns are independent."""

    def cells(profile: Profile) -> list[Cell]:
        return [
            cell
            for reading, signal in readings.items()
            for cell in batch_cells(profile, name + reading, profile.sparse_design(correlation=rho, signal=signal))
        ]

    def panels(results: Results, profile: Profile) -> list[Panel]:
        return [
            replace(panel, title=panel.title + reading)
            for reading in readings
            for panel in batch_panels(results, profile, name + reading)
        ]

    def claims(results: Results, profile: Profile) -> list[Claim]:
        cases = {}
        for panel in panels(results, profile):
            ends = last(panel.lines, LABELS)
            ours = max(end for label, end in ends.items() if label.startswith("OHT"))
            theirs = min(end for label, end in ends.items() if label.startswith("OS_LASSO"))
            cases[panel.title] = Case(
                verdict(ours < theirs), ", ".join(f"{label} {end:.3g}" for label, end in ends.items()) + "."
            )
        return [
            together(
                f"{title}: Algorithm 1 beats OS_LASSO with any K, after batches of 100 and of 500 rows.",
                cases,
                "after the last round the largest median of Algorithm 1 is below the smallest of OS_LASSO",
            )
        ]

    return Item(
        name,
        f"{number}: error against rounds, weak signals, {title}",
        "Batches of 100 and 500 rows, then T rounds; s = 50.",
        cells,
        panels,
        claims,
        choices=(VARIANCE,) if len(readings) > 1 else (),
    )


SD = {"": 0.2}
BOTH = {**SD, ", 0.2 as a variance": round(0.2**0.5, 6)}
VARIANCE = (
    "N(0, 0.2) is read as standard deviation 0.2, as in all other figures. This one also shows it as a variance: then "
    "signals are more than twice as large."
)
ITEMS = (
    _figure("figure-weak-independent", "Figure S1", "independent columns", 0.0, BOTH),
    _figure("figure-weak-toeplitz-03", "Figure S2", "Toeplitz 0.3", 0.3, SD),
    _figure("figure-weak-toeplitz-05", "Figure S3", "Toeplitz 0.5", 0.5, SD),
    _figure("figure-weak-toeplitz-07", "Figure S4", "Toeplitz 0.7", 0.7, SD),
)
