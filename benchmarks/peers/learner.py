"""What every method in the comparison has to offer, and how one is described."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np


class Learner:
    """A method at work on one stream.

    ``learn`` absorbs rows and has a current estimate after each of them; ``estimate`` makes ``coef`` and ``intercept``
    readable, and is where a method that refits only at checkpoints does its work.
    """

    coef: np.ndarray
    intercept = 0.0
    # Seconds of ``learn`` spent on turning numbers into the method's input format.
    seconds_formatting = 0.0
    # Whether rows can be absorbed without their estimates, the later estimates being the same.
    can_skip = False

    def learn(self, X, y):
        raise NotImplementedError

    def skip(self, X, y):
        raise NotImplementedError

    def learn_block(self, X, y):
        """Absorb rows of which only the last needs an estimate."""
        self.learn(X, y)

    def estimate(self):
        pass

    def predict(self, X):
        return X @ self.coef + self.intercept

    def state_bytes(self):
        """Size of what has to be kept to go on."""
        return len(pickle.dumps(self, protocol=5))


@dataclass(frozen=True)
class Method:
    """A method, the grid over which it is tuned, and how it may be called.

    Parameters
    ----------
    name : str
    make : callable
        ``make(n_features, **setting)``, and ``make(n_features, real=True, **setting)`` for data that are neither
        centred nor scaled.
    grid, real_grid : mapping
        Values of each setting; all combinations are tried. Real data, standardised, have a grid of their own.
    estimates : str
        ``"row"``: current after every row; ``"block"``: after every block of rows; ``"checkpoint"``: it refits.
    like : str, optional
        Use the setting that is best for another method: nearly the same, called in another way.
    slow : bool
        Tuned on one stream instead of several.
    takes_steps : bool
        Whether a good step depends on the number of columns, so that it is tuned for each.
    quick : bool
        Whether it is fast enough to be tuned on all rows of real data, instead of the first 5000.
    """

    name: str
    make: Callable[..., Learner]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    estimates: str = "row"
    like: str | None = None
    slow: bool = False
    takes_steps: bool = False
    quick: bool = False
    note: str = ""
    real_grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def settings(self, real=False):
        """All combinations of the grid."""
        grid = self.real_grid if real else self.grid
        return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def rescaled(coef, intercept, means, scales, mean, scale):
    """Coefficients for the data, from those for ((x - means) / scales, (y - mean) / scale)."""
    coef = coef * scale / scales
    return coef, intercept * scale + mean - means @ coef


class RunningScale:
    """Means and standard deviations of the rows so far; constant columns have scale one."""

    def __init__(self, d):
        self.n, self.means, self.squares = 0, np.zeros(d), np.zeros(d)

    def absorb(self, X):
        n, means = len(X), X.mean(axis=0)
        change, before = means - self.means, self.n
        self.n += n
        self.means += change * (n / self.n)
        self.squares += ((X - means) ** 2).sum(axis=0) + change**2 * (before * n / self.n)

    @property
    def scales(self):
        scales = np.sqrt(self.squares / max(self.n, 1))
        return np.where(scales > 1e-12 * (1.0 + np.abs(self.means)), scales, 1.0)


def standardised(learner, d, real, block=1):
    """A gradient method as it is for drawn rows, and on running scales for real ones."""
    return Scaled(learner, d, block) if real else learner


class Scaled(Learner):
    """A gradient method on standardised rows and response, with running means and standard deviations.

    What a gradient method needs on data of mixed units; the same as river's StandardScaler on both sides.
    """

    def __init__(self, inner, d, block=1):
        self.inner, self.block = inner, block
        self.rows, self.response = RunningScale(d), RunningScale(1)

    def learn(self, X, y):
        for start in range(0, len(y), self.block):
            rows, response = X[start : start + self.block], y[start : start + self.block]
            self.rows.absorb(rows)
            self.response.absorb(response[:, None])
            self.inner.learn(
                (rows - self.rows.means) / self.rows.scales,
                (response - self.response.means) / self.response.scales,
            )

    @property
    def seconds_formatting(self):
        return self.inner.seconds_formatting

    def estimate(self):
        self.inner.estimate()
        self.coef, self.intercept = rescaled(
            self.inner.coef,
            self.inner.intercept,
            self.rows.means,
            self.rows.scales,
            self.response.means[0],
            self.response.scales[0],
        )

    def state_bytes(self):
        return self.inner.state_bytes() + len(pickle.dumps((self.rows, self.response), protocol=5))

    def predict(self, X):
        scaled = self.inner.predict((X - self.rows.means) / self.rows.scales)
        return scaled * self.response.scales[0] + self.response.means[0]
