"""Squared error against rounds, strong signals."""

import numpy as np

from thresher.paper.against_rounds import LABELS, batch_cells, batch_panels, last
from thresher.paper.cells import Cell
from thresher.paper.item import Claim, Item, Panel, Results, Verdict
from thresher.paper.profiles import Profile

NAME = "figure-strong"
# Half again as large an error counts as comparable: s = 50 is to be paid for.
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
        ends = last(panel.lines, LABELS)
        ours = min(ends[label] for label in LABELS if label.startswith("OHT"))
        theirs = panel.lines["OS_LASSO K=20"].errors[:, -1]
        n_good = int((theirs <= COMPARABLE * ours).sum())
        judged: Verdict = "does not hold"
        if 2 * n_good > len(theirs):
            judged = "holds" if n_good >= 0.9 * len(theirs) else "holds with a change"
        found.append(
            Claim(
                f"Strong signals, {panel.title}: OS_LASSO does about as well as Algorithm 1.",
                judged,
                f"After the last round {n_good} of {len(theirs)} runs of OS_LASSO K = 20 are within {COMPARABLE} times "
                f"the best median of Algorithm 1 ({ours:.3g}) or better; they range from {theirs.min():.3g} to "
                f"{theirs.max():.3g}, with a median of {np.median(theirs):.3g}."
                + (" The change: in most runs, not in all." if judged == "holds with a change" else ""),
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
