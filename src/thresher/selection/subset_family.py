"""Choosing among linear models with few features, or few groups of them."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import Floats
from thresher.selection.criteria import Criterion
from thresher.selection.ebic import Ebic
from thresher.selection.family import Family
from thresher.solvers.forward_backward import Penalty
from thresher.solvers.path import log_choices
from thresher.solvers.subsets import LONGEST, SubsetPath, Subsets
from thresher.summaries.gram import Gram

# What ends a path where no information criterion chooses: one that is lenient.
LENIENT = Ebic(gamma=0.25)


@dataclass(frozen=True)
class SubsetFamily(Subsets, Family):
    """Linear models by their number of features or groups: ``path`` is forward selection, elimination and swaps."""

    fallback = Ebic()

    def path(self, summary: Gram, n_most: int | None = None, criterion: Criterion | None = None) -> SubsetPath:
        """Candidates of sizes from zero on, until they do not get better; of all sizes up to `n_most`, if given."""
        weight, n_units = summary.weight, self.n_units(summary)
        n = self.most(summary) if n_most is None else min(n_most, n_units)
        log_models = log_choices(n_units, min(n_units, LONGEST if n_most is None else max(n, 1)))[: max(n, 1) + 1]
        by_size = (criterion or LENIENT).penalty(weight, np.zeros(len(log_models)), log_models)
        # The penalty is linear in the number of parameters.
        one_more = (criterion or LENIENT).penalty(weight, np.ones(len(log_models[:2])), log_models[:2])
        penalty = Penalty(float(one_more[0] - by_size[0]), np.ascontiguousarray(by_size, np.float64))
        return self.search(summary, penalty, n, exhaustive=n_most is not None)

    def loss_elsewhere(self, path: SubsetPath, summary: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        return path.loss_on(summary)
