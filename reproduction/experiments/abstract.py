"""Statements of the abstract and of the conclusions, about all experiments with sparse vectors together."""

from itertools import product

import numpy as np

from reproduction.cells import Cell
from reproduction.experiments import figure_strong, figure_weak_s, figures_weak_designs
from reproduction.experiments.figure_weak_t0 import DESIGNS
from reproduction.item import Claim, Item, Panel, Results, partly
from reproduction.profiles import STEPS, Profile

# Errors up to this ratio to the best setting count as robust.
ROBUST = 2.0


def cells(profile: Profile) -> list[Cell]:
    """Those of the figures against rounds, and of the one against s."""
    rounds = [cell for item in figures_weak_designs.ITEMS for cell in item.cells(profile)]
    return rounds + figure_strong.cells(profile) + figure_weak_s.cells(profile)


def panels(results: Results, profile: Profile) -> list[Panel]:
    """The ends of all: in their own figures."""
    return figure_weak_s.panels(results, profile)


def claims(results: Results, profile: Profile) -> list[Claim]:
    """Better than OS_LASSO everywhere, and robust to s and K."""
    return [_outperforms(results, profile), _robust(results, profile)]


def _outperforms(results: Results, profile: Profile) -> Claim:
    won, lost, n = 0, [], 0
    drawn = {item.title: item.panels(results, profile) for item in figures_weak_designs.ITEMS}
    drawn[figure_strong.ITEM.title] = figure_strong.panels(results, profile)
    for title, of_item in drawn.items():
        for panel in of_item:
            theirs = np.min([panel.lines[f"OS_LASSO K={K}"].errors[:, -1] for K in (1, 20)], axis=0)
            ours = panel.lines["OHT K=5"].errors[:, -1]
            good = int((ours < theirs).sum())
            won, n = won + good, n + len(ours)
            if good < len(ours):
                lost.append(f"{title}, {panel.title}: {good} of {len(ours)}")
    return Claim(
        "Algorithm 1 consistently outperforms the alternative.",
        partly(won, n),
        f"K = 5 against the better of OS_LASSO with K = 1 and 20, after the last round: better in {won} of {n} runs."
        + (f" Not in all of {'; '.join(lost)}." if lost else ""),
        "better in nine tenths of all designs, batches and seeds; a change in two thirds",
    )


def _robust(results: Results, profile: Profile) -> Claim:
    end, n_good, n, worst = figure_weak_s.T0 + profile.n_rounds, 0, 0, 0.0
    for design in DESIGNS:
        medians = {
            (s, K): float(np.median(results.errors(f"weak-s {design}", f"OHT K={K} s={s}", end)))
            for s, K in product(figure_weak_s.SIZES, STEPS)
        }
        ratios = np.array(list(medians.values())) / min(medians.values())
        n_good, n, worst = n_good + int((ratios <= ROBUST).sum()), n + len(ratios), max(worst, float(ratios.max()))
    return Claim(
        "Algorithm 1 is robust to the choices of s and K, if s is not below s*.",
        partly(n_good, n),
        f"{n_good} of {n} settings are within a factor of {ROBUST:g} of the best one of their design; the worst has "
        f"{worst:.3g} times its error.",
        f"within a factor of {ROBUST:g} in nine tenths of all s from 15 to 100 and K; a change in two thirds",
    )


ITEM = Item(
    "abstract",
    "Abstract and Section 6: better than the alternative, robust to s and K",
    "From the figures against rounds and the figure against s.",
    cells,
    panels,
    claims,
)
