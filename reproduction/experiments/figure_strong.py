"""Squared error against rounds, strong signals."""

from dataclasses import replace

import numpy as np

from reproduction.cells import Cell
from reproduction.experiments.against_rounds import batch_cells, batch_panels
from reproduction.item import Case, Claim, Item, Panel, Results, partly, together
from reproduction.profiles import Profile
from reproduction.trends import listed

NAME = "figure-strong"
EXACT = f"{NAME} exactly"
# Nonzero entries that the paper reports, of 1000.
N_STRONG = 12
# Errors up to this ratio count as comparable.
COMPARABLE = 1.5


def cells(profile: Profile) -> list[Cell]:
    """Entries N(0, 0.4^2) below one in size are dropped; as many as chance leaves, and as many as the paper has."""
    strong = {"n_active": profile.n_features, "signal": 0.4, "threshold": 1.0}
    exactly = max(round(N_STRONG * profile.n_features / 1000), 1)
    return batch_cells(profile, NAME, profile.sparse_design(**strong)) + batch_cells(
        profile, EXACT, profile.sparse_design(**strong, exactly=exactly)
    )


def panels(results: Results, profile: Profile) -> list[Panel]:
    """One per batch and reading; the paper's number of entries first."""
    return [
        replace(panel, title=panel.title + reading)
        for name, reading in ((EXACT, ", number of entries as in the paper"), (NAME, ", number left to chance"))
        for panel in batch_panels(results, profile, name)
    ]


def claims(results: Results, profile: Profile) -> list[Claim]:
    """The lasso finds strong signals in its batch."""
    alike, found = {}, {}
    for panel in panels(results, profile):
        ratios = {
            K: panel.lines[f"OS_LASSO K={K}"].errors[:, -1] / panel.lines[f"OHT K={K}"].errors[:, -1] for K in (1, 20)
        }
        close = {K: np.abs(np.log(ratio)) <= np.log(COMPARABLE) for K, ratio in ratios.items()}
        n_good, n = min(int(one.sum()) for one in close.values()), len(ratios[1])
        alike[panel.title] = Case(
            partly(n_good, n),
            f"in {n_good} of {n} seeds; medians {listed({K: float(np.median(ratio)) for K, ratio in ratios.items()})}, "
            f"largest {listed({K: float(ratio.max()) for K, ratio in ratios.items()})}.",
        )
        # A nonzero entry is at least one in size, so one that the lasso misses costs at least one.
        n_found = int((panel.lines["OS_LASSO K=20"].errors[:, -1] < 1.0).sum())
        found[panel.title] = Case(partly(n_found, n), f"in {n_found} of {n} seeds (an error below one shows it).")
    return [
        together(
            "Strong signals: OS_LASSO and Algorithm 1 have comparable errors.",
            alike,
            f"errors with the same K and seed within a factor of {COMPARABLE}, up or down, in 9/10 of the seeds; "
            "a change in two thirds",
        ),
        together(
            "Strong signals: the lasso finds all nonzero entries in its batch.",
            found,
            "in nine tenths of the seeds; a change in two thirds",
        ),
    ]


ITEM = Item(
    NAME,
    "Figure S5: error against rounds, strong signals",
    "Entries N(0, 0.4 squared), those below one in size set to zero; independent columns, batches of 100 and 500 rows, "
    "then T rounds; s = 50.",
    cells,
    panels,
    claims,
    choices=(
        "0.4 is read as a standard deviation: then about 12 of 1000 entries exceed one, the paper's number.",
        "The paper reports 12 nonzero coefficients. Streams with exactly 12 are shown first, those with as many as "
        "chance leaves after them.",
    ),
)
