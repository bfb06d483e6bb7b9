"""Learn polynomial differential equations from noisy samples, in one pass and constant memory.

With dx/dt = f(x) and a smooth phi that vanishes at both ends of a window, integration by parts gives

    - integral phi'(t) x(t) dt = integral phi(t) f(x(t)) dt,

so that no sample has to be differentiated (Schaeffer and McCalla, 2017; Messenger and Bortz, 2021). Every window of
samples becomes one row: the left side is the response, and the features are the monomials of x averaged with phi.

Windows do not overlap, so rows have independent noise and an information criterion counts them rightly. They are short
on purpose. Monomials of noisy samples are noisy features, and least squares on noisy features is biased; in a short
window the noise of the response, of order 1 / length, hides what that bias would add to the equations.
"""

import pickle
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from thresher import Ebic, SparseRegressor

# Three or ten equations are chosen at once, each from dozens of terms, and none may have one too many. The default is
# made for one. With 1.0 the criterion is consistent for any number of terms that grows as a power of the rows (Chen and
# Chen, 2008).
GAMMA = 1.0


@dataclass
class Equation:
    """One right-hand side: the terms found and their coefficients."""

    terms: list[tuple[int, ...]]
    coef: np.ndarray

    def as_dict(self):
        return dict(zip(self.terms, self.coef, strict=True))


@dataclass
class Verdict:
    """How far equations are from the true ones."""

    right: int  # equations with all true terms and no other
    missing: int
    false: int
    error: float  # the largest relative error of a true coefficient; 1 if its term is missing
    exact: bool


def judge(equations, truth):
    """Compare equations with the true ones, term by term."""
    pairs = [(equation.as_dict(), true) for equation, true in zip(equations, truth, strict=True)]
    right = sum(set(found) == set(true) for found, true in pairs)
    missing = sum(len(set(true) - set(found)) for found, true in pairs)
    false = sum(len(set(found) - set(true)) for found, true in pairs)
    error = max(abs(found.get(term, 0.0) / value - 1.0) for found, true in pairs for term, value in true.items())
    return Verdict(right, missing, false, error, missing + false == 0)


class Library:
    """All monomials in n variables up to a degree; (0, 0, 2) is x0^2 x2, and () is the constant."""

    def __init__(self, n_variables, degree):
        sizes = range(degree + 1)
        self.terms = [term for k in sizes for term in combinations_with_replacement(range(n_variables), k)]

    def monomials(self, X):
        """One array for each term, from variables along the last axis: a term of lower degree times a variable."""
        variables = [np.ascontiguousarray(X[..., j]) for j in range(X.shape[-1])]
        values = {(): np.ones(X.shape[:-1])}
        for term in self.terms[1:]:
            values[term] = values[term[:-1]] * variables[term[-1]]
        return list(values.values())

    def __call__(self, X):
        """The monomials along the last axis."""
        return np.stack(self.monomials(X), axis=-1)


def bump(length, dt, power=4):
    """Weights of phi = (1 - u^2)^power and of -phi' at the samples of a window, u from -1 to 1.

    They are scaled so that the sums, like the integrals, are exact for constants and for straight lines.
    """
    u = 2.0 * np.arange(length) / length - 1.0  # the right end belongs to the next window; both weights are zero there
    phi = (1.0 - u**2) ** power
    minus_slope = u * (1.0 - u**2) ** (power - 1)
    return phi / phi.sum(), minus_slope / (minus_slope @ (u * length * dt / 2.0))


class Dynamics:
    """One `SparseRegressor` for each variable, fed with one row for each window of samples."""

    def __init__(self, n_variables, degree, dt, window):
        self.library = Library(n_variables, degree)
        self.window = window
        self.phi, self.minus_slope = bump(window, dt)
        # The constant is a term like any other, to be found or not, so it is a column and there is no intercept.
        self.models = [SparseRegressor(selection=Ebic(GAMMA), fit_intercept=False) for _ in range(n_variables)]
        self.waiting = np.empty((0, n_variables))  # less than a window

    def rows(self, samples):
        """Features and responses of the windows in a block of samples, a whole number of them."""
        windows = samples.reshape(-1, self.window, samples.shape[1])
        features = np.stack([values @ self.phi for values in self.library.monomials(windows)], axis=-1)
        return features, self.minus_slope @ windows

    def feed(self, samples, block=100):
        """Absorb samples, as many as there are; `block` windows at a time."""
        samples = np.concatenate([self.waiting, samples])
        whole = len(samples) // self.window * self.window
        for start in range(0, whole, block * self.window):
            features, rates = self.rows(samples[start : min(start + block * self.window, whole)])
            for model, rate in zip(self.models, rates.T, strict=True):
                model.partial_fit(features, rate)
        self.waiting = samples[whole:].copy()
        return self

    def equations(self):
        """The equations by all samples so far, with terms that are chosen now."""
        return [self.equation(model.finish().coef_) for model in self.models]

    def equation(self, coef):
        """The terms with a coefficient, and those."""
        kept = np.flatnonzero(coef)
        return Equation([self.library.terms[i] for i in kept], coef[kept])

    def state_bytes(self):
        """What is kept of the stream: the co-moments alone, and everything, as it would be stored."""
        states = [vars(model.summary_.state).values() for model in self.models]
        moments = sum(value.nbytes for state in states for value in state if isinstance(value, np.ndarray))
        return moments, len(pickle.dumps((self.models, self.waiting)))
