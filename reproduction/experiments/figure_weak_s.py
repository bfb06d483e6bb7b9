"""Squared error after T rounds against the projection sparsity, weak signals."""

import numpy as np

from reproduction.cells import Cell, Method
from reproduction.experiments.figure_weak_t0 import DESIGNS
from reproduction.item import Claim, Item, Line, Panel, Results, Verdict, level, verdict
from reproduction.profiles import REFERENCES, STEPS, Profile
from reproduction.trends import listed, ratio

SIZES = (15, *range(20, 101, 10))
T0 = 100
FEW = 30
# Ratios of errors that count as equal, and as better.
EQUAL, BETTER = 1.25, 1.05


def cells(profile: Profile) -> list[Cell]:
    """One per design and seed."""
    at = (T0 + profile.n_rounds,)
    methods: list[Method] = [profile.oht(f"OHT K={K} s={s}", at, T0, s, K) for s in SIZES for K in STEPS]
    methods += profile.references(at)
    return [
        Cell(f"weak-s {design}", profile.sparse_design(correlation=rho), seed, tuple(methods))
        for design, rho in DESIGNS.items()
        for seed in range(profile.vector_seeds)
    ]


def panels(results: Results, profile: Profile) -> list[Panel]:
    """One per design."""
    found, end = [], T0 + profile.n_rounds
    for design in DESIGNS:
        cell = f"weak-s {design}"
        lines = {
            f"OHT K={K}": Line(SIZES, np.array([results.errors(cell, f"OHT K={K} s={s}", end) for s in SIZES]).T)
            for K in STEPS
        }
        lines |= {label: level(SIZES, results.errors(cell, label, end)) for label in REFERENCES}
        found.append(Panel(design, "projection sparsity s", lines))
    return found


def claims(results: Results, profile: Profile) -> list[Claim]:
    """More steps help while s is small, and five are as good as twenty."""
    found = []
    few = np.array(SIZES) <= FEW
    for panel in panels(results, profile):
        lines = {K: panel.lines[f"OHT K={K}"] for K in STEPS}
        gains = np.array([ratio(lines[1], lines[K]) for K in STEPS[1:]])
        least = gains.min(axis=0)
        up_to = [s for s, better in zip(SIZES, np.logical_and.accumulate(least > BETTER), strict=True) if better]
        judged: Verdict = "does not hold"
        if up_to:
            judged = "holds" if up_to[-1] >= FEW else "holds with a change"
        found.append(
            Claim(
                f"{panel.title}: K = 5, 10, 20 beat K = 1 for s up to {FEW}.",
                judged,
                "Error of K = 1 over that of the worst of the three: "
                + listed({s: float(g) for s, g in zip(SIZES, least, strict=True) if s <= FEW}, "s")
                + (f". The change: for s up to {up_to[-1]}." if judged == "holds with a change" else "."),
                f"all above {BETTER}",
            )
        )
        many = gains[:, ~few]
        if "Toeplitz" in panel.title:
            text, holds = "K = 5, 10, 20 are slightly better than K = 1", (many > 1.0).all() and (many < 1.5).all()
            rule = "all between 1 and 1.5"
        else:
            text, holds = "all K have about the same error", (np.abs(np.log(many)) < np.log(EQUAL)).all()
            rule = f"all within a factor of {EQUAL}"
        found.append(
            Claim(
                f"{panel.title}: for s above {FEW}, {text}.",
                verdict(bool(holds)),
                f"Error of K = 1 over that of K = 5, 10, 20: {many.min():.2f} to {many.max():.2f}.",
                rule,
            )
        )
        apart = np.array([ratio(lines[a], lines[b]) for a, b in ((5, 10), (5, 20), (10, 20))])
        found.append(
            Claim(
                f"{panel.title}: K = 5, 10 and 20 have about the same error.",
                verdict(bool((np.abs(np.log(apart)) < np.log(EQUAL)).all())),
                f"Error of one over that of another: {apart.min():.2f} to {apart.max():.2f} over all s.",
                f"all within a factor of {EQUAL}",
            )
        )
    return found


ITEM = Item(
    "figure-weak-s",
    "Error against the projection sparsity",
    f"A batch of {T0} rows, then T rounds; weak signals with 15 nonzero coefficients. The default chooses s by itself, "
    "so its line is level.",
    cells,
    panels,
    claims,
    choices=("Methods are compared seed by seed, by the median of their ratio.",),
)
