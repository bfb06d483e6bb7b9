"""The synthetic problems with their methods: rows of numbers, and matrices."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import matrices
from designs import CHECKPOINTS, DESIGNS, draw
from learner import Method
from registry import METHODS


@dataclass(frozen=True)
class Problem:
    """Where rows come from, when to look, and who is there."""

    name: str
    draw: Callable
    checkpoints: tuple[int, ...]
    methods: dict[str, Method]
    # The problem on which methods are tuned, unless they take steps.
    tuned_on: str

    @property
    def of_matrices(self):
        return self.name not in DESIGNS


PROBLEMS = {
    **{
        name: Problem(name, partial(draw, name), CHECKPOINTS, METHODS, name.replace("d = 4000", "d = 1000"))
        for name in DESIGNS
    },
    **{
        name: Problem(name, source, checkpoints, {method.name: method for method in methods}, name)
        for name, (source, checkpoints, methods) in matrices.PROBLEMS.items()
    },
}
