"""A few steps on the penalised problem per round, beside Algorithm 1: Section 2 and its figure of the cone."""

import numpy as np

from reproduction.cells import Cell, Method
from reproduction.item import Case, Claim, Item, Panel, Results, together, verdict
from reproduction.profiles import REFERENCES, Profile
from reproduction.trends import listed

NAME = "figure-cone"
T0, K, SIZE, ETA = 100, 5, 50, 0.1
UPDATES = ("subgradient", "proximal")
OHT = f"OHT K={K}"
# An estimate is in the cone C(3, S) if the l1 norm of its error outside S is at most so many times that on S.
CONE, WORSE = 3.0, 2.0
# "Need not be in the cone": how often outside, at least.
OFTEN = 0.1


def label(update: str) -> str:
    """Of a method."""
    return f"l1 {update} K={K}"


def cells(profile: Profile) -> list[Cell]:
    """One per seed; products with all columns in every step take long, so there are fewer rounds."""
    at = profile.times(T0, _rounds(profile))
    methods = [profile.oht(OHT, at, T0, SIZE, K, ETA)]
    for update in UPDATES:
        methods.append(Method(label(update), "l1", at, T0, 0, K, ETA, update))
        methods.append(Method(f"{label(update)} cone", "l1", at, T0, 0, K, ETA, update, "cone"))
    methods += profile.references(at)
    design = profile.sparse_design()
    return [Cell(NAME, design, seed, tuple(methods)) for seed in range(min(profile.vector_seeds, 5))]


def _rounds(profile: Profile) -> int:
    return profile.n_rounds // 5


def panels(results: Results, profile: Profile) -> list[Panel]:
    """Errors, and how far outside the cone."""
    at = profile.times(T0, _rounds(profile))
    labels = (OHT, *map(label, UPDATES), *REFERENCES)
    errors = {one: results.line(NAME, one, at, T0) for one in labels}
    return [Panel("squared error", "online rounds t", errors)]


def claims(results: Results, profile: Profile) -> list[Claim]:
    """Outside the cone, and behind."""
    at = profile.times(T0, _rounds(profile))
    errors = panels(results, profile)[0].lines
    outside, behind = {}, {}
    for update in UPDATES:
        ratios = results.line(NAME, f"{label(update)} cone", at, T0).errors
        n_out = int((ratios > CONE).sum())
        outside[update] = Case(
            verdict(n_out >= OFTEN * ratios.size),
            f"outside in {n_out} of {ratios.size} pairs of a seed and a round; median ratio {np.median(ratios):.3g}.",
        )
        end = errors[label(update)].errors[:, -1] / errors[OHT].errors[:, -1]
        behind[update] = Case(verdict(float(np.median(end)) > WORSE), f"{listed({K: float(np.median(end))})}.")
    return [
        together(
            "Estimates after a few subgradient or proximal steps per round need not be in the cone in which the "
            "penalised problem is strongly convex.",
            outside,
            f"error outside the support over that on it, in l1, above {CONE:g} in a tenth of the cases; a change if "
            "for subgradient steps alone",
            first_decides=True,
        ),
        together(
            "So a few such steps per round do not have the error of Algorithm 1.",
            behind,
            f"median of their error over that of Algorithm 1 after the last round above {WORSE:g}",
        ),
    ]


ITEM = Item(
    NAME,
    "Figure 1: a few steps on the penalised problem, and the cone",
    f"A batch of {T0} rows, then T/5 rounds of K = {K} steps of size {ETA:g}: subgradient and proximal steps on the "
    f"penalised problem, and Algorithm 1 with s = {SIZE}. Weak signals, independent columns.",
    cells,
    panels,
    claims,
    choices=(
        "The paper draws the cone and reports no experiment; this is ours.",
        "The penalty is 2 sigma sqrt(2 log(2 d) / n), with the true sigma: with it, exact solutions are in the cone.",
    ),
)
