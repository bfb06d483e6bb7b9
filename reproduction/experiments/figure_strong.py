"""Squared error against rounds, strong signals."""

import numpy as np

from reproduction.cells import Cell
from reproduction.experiments.against_rounds import batch_cells, batch_panels
from reproduction.item import Claim, Item, Panel, Results, partly
from reproduction.profiles import Profile
from reproduction.trends import listed

NAME = "figure-strong"
# Errors up to this ratio count as comparable.
COMPARABLE = 1.5


def cells(profile: Profile) -> list[Cell]:
    """Entries N(0, 0.4^2) below one in size are dropped."""
    strong = {"n_active": profile.n_features, "signal": 0.4, "threshold": 1.0}
    return batch_cells(profile, NAME, profile.sparse_design(**strong))


def panels(results: Results, profile: Profile) -> list[Panel]:
    """One per batch."""
    return batch_panels(results, profile, NAME)


def claims(results: Results, profile: Profile) -> list[Claim]:
    """The lasso finds strong signals in its batch."""
    found = []
    for panel in panels(results, profile):
        ratios = {
            K: panel.lines[f"OS_LASSO K={K}"].errors[:, -1] / panel.lines[f"OHT K={K}"].errors[:, -1] for K in (1, 20)
        }
        n_good, n = min(int((ratio <= COMPARABLE).sum()) for ratio in ratios.values()), len(ratios[1])
        judged = partly(n_good, n)
        found.append(
            Claim(
                f"Strong signals, {panel.title}: OS_LASSO does at least about as well as Algorithm 1.",
                judged,
                f"Error of OS_LASSO over that of Algorithm 1 with the same K, seed by seed: in {n_good} of {n} seeds "
                f"at most {COMPARABLE}; medians {listed({K: float(np.median(ratio)) for K, ratio in ratios.items()})}, "
                f"largest {listed({K: float(ratio.max()) for K, ratio in ratios.items()})}."
                + (" The change: in most seeds, not in all." if judged == "holds with a change" else ""),
                f"at most {COMPARABLE} in nine tenths of the seeds; a change in more than half",
            )
        )
        # A nonzero entry is at least one in size, so one that the lasso misses costs at least one.
        n_found = int((panel.lines["OS_LASSO K=20"].errors[:, -1] < 1.0).sum())
        judged = partly(n_found, n)
        found.append(
            Claim(
                f"Strong signals, {panel.title}: the lasso finds all nonzero entries in its batch.",
                judged,
                f"In {n_found} of {n} seeds (an error below one shows that none is missing)."
                + (" The change: in most seeds, not in all." if judged == "holds with a change" else ""),
                "in nine tenths of the seeds; a change in more than half",
            )
        )
    return found


ITEM = Item(
    NAME,
    "Error against rounds: strong signals",
    "Entries N(0, 0.4 squared), those below one in size set to zero; independent columns, batches of 100 and 500 rows, "
    "then T rounds; s = 50.",
    cells,
    panels,
    claims,
    choices=(
        "0.4 is read as a standard deviation: then about 12 of 1000 entries exceed one, the paper's number.",
        "The number of nonzero coefficients is left to chance, so that it differs between seeds.",
    ),
)
