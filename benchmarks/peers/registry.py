"""The methods of the comparison, ours first."""

from methods import algorithm_one, gram_solvers, ours, recursive, refits, river_linear, sgd, vowpal

METHODS = {
    method.name: method
    for module in (ours, gram_solvers, refits, algorithm_one, recursive, sgd, river_linear, vowpal)
    for method in module.METHODS
}
