"""The common part of the figures of error against rounds, for sparse vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

from reproduction.cells import Cell, Method
from reproduction.item import Line, Panel, Results
from reproduction.profiles import REFERENCES, STEPS, Profile

BATCHES = (100, 500)
SIZE = 50
LABELS = (*(f"OHT K={K}" for K in STEPS), "OS_LASSO K=1", "OS_LASSO K=20")


def batch_cells(profile: Profile, name: str, design: dict[str, Any]) -> list[Cell]:
    """Algorithm 1 and OS_LASSO after two batches, one cell per seed."""
    methods: list[Method] = []
    at: set[int] = set()
    for t0 in BATCHES:
        times = profile.times(t0, profile.n_rounds)
        at.update(times)
        methods += [profile.oht(f"OHT K={K} t0={t0}", times, t0, SIZE, K) for K in STEPS]
        methods += [profile.os_lasso(f"OS_LASSO K={K} t0={t0}", times, t0, K) for K in (1, 20)]
    methods += profile.references(sorted(at))
    return [Cell(name, design, seed, tuple(methods)) for seed in range(profile.vector_seeds)]


def batch_panels(results: Results, profile: Profile, name: str) -> list[Panel]:
    """One per batch."""
    found = []
    for t0 in BATCHES:
        times = profile.times(t0, profile.n_rounds)
        lines = {label: results.line(name, f"{label} t0={t0}", times, t0) for label in LABELS}
        lines |= {label: results.line(name, label, times, t0) for label in REFERENCES}
        found.append(Panel(f"batch of {t0} rows", "online rounds t", lines))
    return found


def last(lines: Mapping[str, Line], labels: Sequence[str]) -> dict[str, float]:
    """Medians at the end of lines."""
    return {label: float(lines[label].medians[-1]) for label in labels}
