"""Squared error against rounds without an initial batch, weak signals, independent columns."""

import numpy as np

from reproduction.cells import Cell, Method
from reproduction.item import Claim, Item, Panel, Results, verdict
from reproduction.profiles import REFERENCES, STEPS, Profile
from reproduction.trends import CONVERGES, converges, listed, ratio, slope

NAME = "figure-free-initial"
SIZES = (15, 30)


def cells(profile: Profile) -> list[Cell]:
    """One per seed."""
    at = profile.times(0, profile.n_rounds)
    methods: list[Method] = [profile.oht(f"OHT K={K} s={s}", at, 0, s, K) for s in SIZES for K in STEPS]
    methods += profile.references(at)
    return [Cell(NAME, profile.sparse_design(), seed, tuple(methods)) for seed in range(profile.vector_seeds)]


def panels(results: Results, profile: Profile) -> list[Panel]:
    """One per s."""
    at = profile.times(0, profile.n_rounds)
    return [
        Panel(
            f"s = {s}",
            "rounds t",
            {f"OHT K={K}": results.line(NAME, f"OHT K={K} s={s}", at) for K in STEPS}
            | {label: results.line(NAME, label, at) for label in REFERENCES},
        )
        for s in SIZES
    ]


def claims(results: Results, profile: Profile) -> list[Claim]:
    """It converges without a batch, faster with more steps."""
    found = []
    for panel in panels(results, profile):
        lines = {K: panel.lines[f"OHT K={K}"] for K in STEPS}
        found.append(
            Claim(
                f"{panel.title}: K = 5, 10, 20 converge to the truth without a batch.",
                verdict(all(converges(lines[K]) for K in STEPS[1:])),
                f"From the first round to the last, the median error falls from {lines[5].medians[0]:.2g} to "
                f"{listed({K: float(lines[K].medians[-1]) for K in STEPS[1:]})}, at the end like t to the power of "
                f"{listed({K: slope(lines[K]) for K in STEPS[1:]})}.",
                CONVERGES,
            )
        )
        moments = {
            "converges much more slowly": (profile.n_rounds // 10, 2.0),
            "is still behind at the end": (profile.n_rounds, 1.1),
        }
        for text, (x, least) in moments.items():
            place = int(np.searchsorted(lines[1].x, x))
            behind = {K: float(ratio(lines[1], lines[K])[place]) for K in STEPS[1:]}
            found.append(
                Claim(
                    f"{panel.title}: K = 1 {text}.",
                    verdict(min(behind.values()) > least),
                    f"Error of K = 1 after {lines[1].x[place]:,} rounds over that of the others: {listed(behind)}.",
                    f"all above {least:g}",
                )
            )
    return found


ITEM = Item(
    NAME,
    "Error against rounds without an initial batch",
    "No batch, T rounds; weak signals, independent columns.",
    cells,
    panels,
    claims,
    choices=("The paper's text says t0 = 100, its caption says no batch: there is none here.",),
)
