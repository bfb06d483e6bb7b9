"""Squared error after T rounds against the projection sparsity, weak signals."""

import numpy as np

from reproduction.cells import Cell, Method
from reproduction.experiments.figure_weak_t0 import DESIGNS
from reproduction.item import Case, Claim, Item, Line, Panel, Results, level, partly, together, verdict
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
    few = np.array(SIZES) <= FEW
    better, equal, same = {}, [], {}
    for panel in panels(results, profile):
        lines = {K: panel.lines[f"OHT K={K}"] for K in STEPS}
        gains = np.array([ratio(lines[1], lines[K]) for K in STEPS[1:]])
        least = gains.min(axis=0)
        n_good = int((least[few] > BETTER).sum())
        better[panel.title] = Case(
            "holds" if n_good == few.sum() else partly(n_good, int(few.sum())),
            listed({s: float(g) for s, g in zip(SIZES, least, strict=True) if s <= FEW}, "s") + ".",
        )
        many = gains[:, ~few]
        if "Toeplitz" in panel.title:
            text, holds = "K = 5, 10, 20 are slightly better than K = 1", (many > 1.0).all() and (many < 1.5).all()
            rule = "all between 1 and 1.5"
        else:
            text, holds = "all K have about the same error", (np.abs(np.log(many)) < np.log(EQUAL)).all()
            rule = f"all within a factor of {EQUAL}, up or down"
        equal.append(
            Claim(
                f"{panel.title}: for s above {FEW}, {text}.",
                verdict(bool(holds)),
                f"Error of K = 1 over that of K = 5, 10, 20: {many.min():.2f} to {many.max():.2f}.",
                rule,
            )
        )
        apart = np.array([ratio(lines[a], lines[b]) for a, b in ((5, 10), (5, 20), (10, 20))])
        same[panel.title] = Case(
            verdict(bool((np.abs(np.log(apart)) < np.log(EQUAL)).all())),
            f"error of one over that of another {apart.min():.2f} to {apart.max():.2f} over all s.",
        )
    return [
        together(
            f"K = 5, 10, 20 beat K = 1 for s up to {FEW}.",
            better,
            f"error of K = 1 over that of the worst of the three above {BETTER} for all such s; a change in two thirds",
        ),
        *equal,
        together("K = 5, 10 and 20 have about the same error.", same, f"all within a factor of {EQUAL}, up or down"),
    ]


ITEM = Item(
    "figure-weak-s",
    "Figure 3: error against the projection sparsity",
    f"A batch of {T0} rows, then T rounds; weak signals with 15 nonzero coefficients. The default chooses s by itself, "
    "so its line is level.",
    cells,
    panels,
    claims,
    choices=("Methods are compared seed by seed, by the median of their ratio.",),
)
