"""Squared error against rounds without an initial batch, weak signals, independent columns."""

import numpy as np

from reproduction.cells import Cell, Method
from reproduction.item import Case, Claim, Item, Panel, Results, together, verdict
from reproduction.profiles import REFERENCES, STEPS, Profile
from reproduction.trends import CONVERGES, converges, listed, ratio, slope

NAME = "figure-free-initial"
SIZES = (15, 30)
# What the caption says, and what the text says.
READINGS = {"no batch": 0, "batch of 100 rows": 100}


def cells(profile: Profile) -> list[Cell]:
    """One per seed, with and without a batch."""
    methods: list[Method] = []
    at: set[int] = set()
    for reading, t0 in READINGS.items():
        times = profile.times(t0, profile.n_rounds)
        at.update(times)
        methods += [profile.oht(f"OHT K={K} s={s} {reading}", times, t0, s, K) for s in SIZES for K in STEPS]
    methods += profile.references(sorted(at))
    return [Cell(NAME, profile.sparse_design(), seed, tuple(methods)) for seed in range(profile.vector_seeds)]


def panels(results: Results, profile: Profile) -> list[Panel]:
    """One per s and reading, the one without a batch first."""
    found = []
    for reading, t0 in READINGS.items():
        times = profile.times(t0, profile.n_rounds)
        for s in SIZES:
            lines = {f"OHT K={K}": results.line(NAME, f"OHT K={K} s={s} {reading}", times, t0) for K in STEPS}
            lines |= {label: results.line(NAME, label, times, t0) for label in REFERENCES}
            found.append(Panel(f"s = {s}, {reading}", "rounds t", lines))
    return found


def claims(results: Results, profile: Profile) -> list[Claim]:
    """It converges without a batch, faster with more steps."""
    without = panels(results, profile)[: len(SIZES)]
    converging = {}
    slow: dict[str, dict[str, Case]] = {"converges much more slowly": {}, "is still behind at the end": {}}
    moments = {
        "converges much more slowly": (profile.n_rounds // 10, 2.0),
        "is still behind at the end": (profile.n_rounds, 1.1),
    }
    for panel in without:
        lines = {K: panel.lines[f"OHT K={K}"] for K in STEPS}
        converging[panel.title] = Case(
            verdict(all(converges(lines[K]) for K in STEPS[1:])),
            f"the median error falls from {lines[5].medians[0]:.2g} to "
            f"{listed({K: float(lines[K].medians[-1]) for K in STEPS[1:]})}, at the end like t to the power of "
            f"{listed({K: slope(lines[K]) for K in STEPS[1:]})}.",
        )
        for text, (x, least) in moments.items():
            place = int(np.searchsorted(lines[1].x, x))
            behind = {K: float(ratio(lines[1], lines[K])[place]) for K in STEPS[1:]}
            slow[text][panel.title] = Case(
                verdict(min(behind.values()) > least), f"after {lines[1].x[place]:,} rounds {listed(behind)}."
            )
    return [
        together("K = 5, 10, 20 converge to the truth without a batch.", converging, CONVERGES),
        *(
            together(f"K = 1 {text}.", slow[text], f"error of K = 1 over that of each of the others above {least:g}")
            for text, (_, least) in moments.items()
        ),
    ]


ITEM = Item(
    NAME,
    "Figure 4: error against rounds without an initial batch",
    "No batch, T rounds; weak signals, independent columns.",
    cells,
    panels,
    claims,
    choices=("The paper's text says t0 = 100, its caption says no batch. Both are shown; claims are about no batch.",),
)
