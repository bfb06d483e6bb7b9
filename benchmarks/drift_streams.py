"""Streams that change in nine ways, and streams that do not change but look as if they did.

A stream has 200 features, of which ten matter, and 20,000 rows. NumPy alone is needed, so that other versions of the
package can be run on the same rows.
"""

from dataclasses import dataclass

import numpy as np

D, T, S = 200, 20_000, 10


@dataclass
class Stream:
    """Rows, responses, and the mean of every response given its row."""

    X: np.ndarray
    y: np.ndarray
    mean: np.ndarray


def coefficients(rng, n):
    """Random signs, sizes between .5 and 1.2."""
    return rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 1.2, n)


def autoregressive(rng, shape, phi):
    """Series over the first axis with variance one."""
    from scipy.signal import lfilter

    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1.0 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)


def changing(kind, seed):
    """One of the nine kinds of change, by its letter.

    a nothing changes; b all coefficients at half time; c the support at half time; d a random walk (.01 per row and
    coefficient); e two regimes that alternate every 2000 rows and differ in half of the coefficients; f the level of y
    rises by 2 at half time; g means and scales of the features at half time; h the noise has deviation 3 from half
    time; i one of the ten features is replaced every 1000 rows.
    """
    rng = np.random.default_rng([ord(kind), seed])
    X, half, rows = rng.standard_normal((T, D)), T // 2, np.arange(T)
    support = rng.permutation(D)
    beta = np.zeros((T, D)) if kind in "cdi" else None
    first, noise, level = coefficients(rng, S), np.ones(T), np.zeros(T)
    if kind == "c":
        beta[:half, support[:S]] = first
        beta[half:, support[S : 2 * S]] = coefficients(rng, S)
    elif kind == "d":
        beta[:, support[:S]] = first + 0.01 * np.cumsum(rng.standard_normal((T, S)), axis=0)
    elif kind == "i":
        kept, values = list(support[:S]), list(first)
        for k in range(T // 1000):
            if k:
                at = int(rng.integers(S))
                kept[at], values[at] = support[S - 1 + k], float(coefficients(rng, 1)[0])
            beta[k * 1000 : (k + 1) * 1000, kept] = values
    if beta is not None:
        mean = np.einsum("td,td->t", X, beta)
    else:
        second = coefficients(rng, S)
        later = rows >= half
        if kind == "e":
            second[: S // 2], later = first[: S // 2], rows // 2000 % 2 == 1
        elif kind != "b":
            second = first
        if kind == "f":
            level[half:] = 2.0
        if kind == "g":
            X[half:] = X[half:] * rng.uniform(0.5, 2.0, D) + rng.standard_normal(D)
        if kind == "h":
            noise[half:] = 3.0
        Z = X[:, support[:S]]
        mean = level + np.where(later, Z @ second, Z @ first)
    return Stream(X, mean + noise * rng.standard_normal(T), mean)


STATIONARY = ("normal", "t3", "heteroscedastic", "rare levels", "GARCH", "AR errors", "covariate shift")


def stationary(kind, seed):
    """A stream whose coefficients do not change; "AR errors and features" is the hardest to tell from one that does."""
    rng = np.random.default_rng([*kind.encode(), seed])
    X, support = rng.standard_normal((T, D)), rng.permutation(D)[:S]
    beta, noise = coefficients(rng, S), rng.standard_normal(T)
    if kind == "t3":
        noise = rng.standard_t(3, T) / np.sqrt(3.0)
    elif kind == "heteroscedastic":
        noise *= np.exp(0.7 * X[:, support[0]])
    elif kind == "rare levels":
        X[:, ::2] = rng.random((T, D // 2)) < rng.uniform(0.002, 0.05, D // 2)
        beta *= 2.0
    elif kind == "GARCH":
        variance = 1.0
        for t in range(T):
            noise[t] *= np.sqrt(variance)
            variance = 0.02 + 0.1 * noise[t] ** 2 + 0.88 * variance
    elif kind == "AR errors":
        noise = autoregressive(rng, T, 0.9)
    elif kind == "AR errors and features":
        noise, X = autoregressive(rng, T, 0.9), autoregressive(rng, (T, D), 0.9)
    elif kind == "covariate shift":
        for start in range(0, T, 4000):
            X[start : start + 4000] *= rng.uniform(0.5, 2.0, D)
            X[start : start + 4000] += rng.standard_normal(D)
    mean = X[:, support] @ beta
    return Stream(X, mean + noise, mean)


def sign_flip(seed, n_rows=9000, at=3000):
    """Three features of twenty, noise .3; the largest coefficient changes its sign."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 20))
    beta = np.tile([1.0, -0.7, 0.5], (n_rows, 1))
    beta[at:, 0] = -1.0
    mean = (X[:, :3] * beta).sum(axis=1)
    return Stream(X, mean + 0.3 * rng.standard_normal(n_rows), mean)


def predictions(model, stream, call=50):
    """What a model predicts for every call before it learns from it; zero for the first."""
    predicted = np.zeros(len(stream.y))
    for start in range(0, len(stream.y), call):
        rows = slice(start, start + call)
        if start:
            predicted[rows] = stream.X[rows] @ model.coef_ + model.intercept_
        model.partial_fit(stream.X[rows], stream.y[rows])
    return predicted


def excess(stream, predicted, start=500, stop=None):
    """Mean squared distance of predictions from the conditional mean."""
    return float(((predicted - stream.mean)[start:stop] ** 2).mean())


def squared_error(stream, predicted, start=500):
    """Mean squared error of predictions."""
    return float(((predicted - stream.y)[start:] ** 2).mean())
