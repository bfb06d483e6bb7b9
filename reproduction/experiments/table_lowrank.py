"""Squared error after T rounds, low rank, by projection rank."""

import numpy as np

from reproduction.cells import Cell
from reproduction.experiments.lowrank import (
    CHOICES,
    SCALES,
    T0,
    batch_cell,
    batch_cells,
    ranks,
    reference_cell,
    reference_cells,
)
from reproduction.item import Case, Claim, Item, Panel, Results, Table, partly, together, verdict
from reproduction.profiles import REFERENCES, STEPS, Profile
from reproduction.trends import listed, table_within_seeds

PRINTED = {
    "OHT K=1": (10.8453, 5.6856, 0.0546, 0.1265, 0.1848, 0.2395),
    "OHT K=5": (10.8447, 5.6460, 0.0508, 0.1357, 0.1968, 0.2499),
    "OHT K=10": (10.8367, 5.6276, 0.0503, 0.1367, 0.1958, 0.2451),
    "OHT K=20": (10.8299, 5.2613, 0.0499, 0.1350, 0.1990, 0.2516),
}


def cells(profile: Profile) -> list[Cell]:
    """Those of all ranks."""
    return batch_cells(profile, ranks(profile)) + reference_cells(profile)


def tables(results: Results, profile: Profile) -> list[Table]:
    """One per scale."""
    found, end = [], T0 + profile.n_rounds
    for scale in SCALES:
        rows = {
            f"OHT K={K}": [results.errors(batch_cell(scale, s), f"OHT K={K}", end) for s in ranks(profile)]
            for K in STEPS
        }
        references = {label: results.errors(reference_cell(scale), label, end) for label in REFERENCES}
        printed = PRINTED if profile.is_full and scale == "as tabulated" else {}
        found.append(Table(scale, [f"s = {s}" for s in ranks(profile)], rows, printed, references))
    return found


def panels(results: Results, profile: Profile) -> list[Panel]:
    """The tables, drawn."""
    return [table.as_panel(ranks(profile), "projection rank s") for table in tables(results, profile)]


def claims(results: Results, profile: Profile) -> list[Claim]:
    """Too small a rank does not converge; too large a one costs in proportion."""
    *below, right, _, _, largest = ranks(profile)
    stuck: dict[str, Case] = {}
    linear: dict[str, Case] = {}
    every = dict(zip(SCALES, tables(results, profile), strict=True))
    for scale, table in every.items():
        medians = {K: dict(zip(ranks(profile), map(np.median, table.rows[f"OHT K={K}"]), strict=True)) for K in STEPS}
        for s in below:
            left = {K: float(medians[K][s] / medians[K][right]) for K in STEPS}
            stuck[f"{scale}, s = {s}"] = Case(verdict(min(left.values()) > 10.0), f"{listed(left)}.")
        costs = {K: {s: float(medians[K][s] / medians[K][right]) for s in ranks(profile) if s > right} for K in STEPS}
        good = [K for K, by_size in costs.items() if all(2 / 3 < c / (s / right) < 1.5 for s, c in by_size.items())]
        linear[scale] = Case(
            partly(len(good), len(STEPS)), "; ".join(f"K = {K}: {listed(one, 's')}" for K, one in costs.items()) + "."
        )
    own = ", ".join(f"{PRINTED[f'OHT K={K}'][-1] / PRINTED[f'OHT K={K}'][2]:.2f} (K = {K})" for K in STEPS)
    if profile.is_full:
        judged, evidence = linear["as stated"]
        linear["as stated"] = Case(judged, f"{evidence} In the paper's table, s = 20 over s = 5: {own}.")
    found = [
        together(
            f"With s = {' or '.join(map(str, below))}, below the rank of the truth, it does not converge.",
            stuck,
            f"error after the last round over that at s = {right} above 10 for every K",
            certain=True,
        ),
        together(
            f"The error grows linearly with s, to about four times that at s = {right} at s = {largest}.",
            linear,
            f"error over that at s = {right} within a factor of 1.5 of s / {right}, up or down; a change if for most K",
            first_decides=True,
        ),
    ]
    return [*found, table_within_seeds(every["as tabulated"])] if profile.is_full else found


ITEM = Item(
    "table-lowrank",
    "Table 2: low rank, error by projection rank",
    f"Matrix sensing with a batch of {T0} rows, then T rounds.",
    cells,
    panels,
    claims,
    choices=(*CHOICES, "The paper's numbers are of a single draw."),
    tables=tables,
)
