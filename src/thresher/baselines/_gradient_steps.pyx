"""Batches of proximal gradient steps for several penalties and columns at once."""

import numpy as np

from libc.math cimport INFINITY, pow
from libc.string cimport memcpy

from thresher._utils.reductions cimport add_multiple, dot
from thresher.baselines._single_rows cimport is_sane, soft

from thresher.io.schema import Array, Count, Number, Schema

ARRAYS = ("grid", "index", "waiting", "waiting_y", "iterates", "averages", "scales")
NUMBERS = ("n_waiting", "n_batches", "chosen", "squares", "longest")


cdef class GradientSteps:
    """Iterates of `DebiasedSGD`, their means, and a batch of rows.

    There is a problem (a row of `iterates`) for each penalty, then one for each inferred column. In `scales` and
    `averages` the first place is that of the response, the others are those of the inferred columns.
    """

    _schema = Schema(
        lambda steps: len(steps.iterates) == len(steps.grid) + len(steps.index),
        lambda steps: len(steps.averages) == 1 + len(steps.index),
        lambda steps: steps.iterates.shape[1] > steps.index.max(initial=0),
        grid=Array("grid", least=0.0),
        index=Array("inferred", dtype="i8", least=0),
        waiting=Array("batch", "d"),
        waiting_y=Array("batch"),
        iterates=Array("problems", "d"),
        averages=Array("averaged", "d"),
        scales=Array("averaged", least=0.0),
        n_waiting=Count(below="batch"),
        n_batches=Count(),
        chosen=Count(below="grid"),
        squares=Number(least=0.0),
        longest=Number(least=0.0),
    )

    cdef public const double[::1] grid  # penalties
    cdef public const Py_ssize_t[::1] index  # inferred columns
    cdef public double[:, ::1] waiting  # (batch size, d): rows that wait for a batch to be full
    cdef public double[::1] waiting_y
    cdef public double[:, ::1] iterates, averages
    cdef public double[::1] scales  # sums of squares of what is predicted
    cdef public Py_ssize_t n_waiting, n_batches
    cdef public Py_ssize_t chosen  # the place of the penalty that predicted the last batch best
    cdef public double squares  # sum of squared residuals of the mean, each row with the one its batch led to
    cdef public double longest  # the largest squared length of a row
    # To work on
    cdef double[::1] gradient
    cdef double[:, ::1] residuals  # (problems, batch size)

    def __init__(self, grid, index, batch_size, n_features):
        self.grid, self.index = grid, index
        self.waiting, self.waiting_y = np.zeros((batch_size, n_features)), np.zeros(batch_size)
        self.iterates = np.zeros((len(grid) + len(index), n_features))
        self.averages, self.scales = np.zeros((1 + len(index), n_features)), np.zeros(1 + len(index))

    def __getstate__(self):
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        return arrays | {name: getattr(self, name) for name in NUMBERS}

    def __setstate__(self, state):
        for name in (*ARRAYS, *NUMBERS):
            setattr(self, name, state[name])

    @property
    def noise_variance(self):
        """The mean squared residual; None before the first batch."""
        return self.squares / (self.n_batches * len(self.waiting)) if self.n_batches else None

    def learn(
        self, const double[:, ::1] X, const double[::1] y, double[::1] zx, double[::1] zy, double[::1] zz,
        double[:, ::1] products, double step_size, double power,
    ):
        """Learn from rows; returns their number, or how many came before the one whose batch had absurd predictions.

        What is left of each inferred column adds to the sums that `Debiasing` defines. A step size of zero stands for
        "auto".
        """
        cdef Py_ssize_t i, d = self.iterates.shape[1], n_inferred = self.index.shape[0]
        cdef bint sane = True
        if X.shape[0] != y.shape[0] or X.shape[1] != d:
            raise ValueError("The rows do not fit together.")
        if not (
            zx.shape[0] == zy.shape[0] == zz.shape[0] == products.shape[0] == n_inferred and products.shape[1] == d
        ):
            raise ValueError("The sums of the inferred columns have another shape.")
        self.gradient, self.residuals = np.empty(d), np.empty((len(self.iterates), len(self.waiting)))
        with nogil:
            for i in range(X.shape[0]):
                memcpy(&self.waiting[self.n_waiting, 0], &X[i, 0], d * sizeof(double))
                self.waiting_y[self.n_waiting] = y[i]
                self.n_waiting = (self.n_waiting + 1) % self.waiting.shape[0]
                if self.n_waiting == 0:
                    sane = self.predict_batch()
                    if not sane:
                        break
                    self.move(step_size, power)
                    self.add_to_sums(zx, zy, zz, products)
        return X.shape[0] if sane else i

    cdef bint predict_batch(self) noexcept nogil:
        """Residuals of all problems before the update, and the penalty that predicts best. False if one diverged."""
        cdef Py_ssize_t i, k, problem, place, d = self.gradient.shape[0], n = self.waiting.shape[0]
        cdef double n_rows = (self.n_batches + 1.0) * n, least = INFINITY, prediction, residual, squares
        cdef double *x
        for i in range(n):
            x = &self.waiting[i, 0]
            self.longest = max(self.longest, dot(x, x, d))
            self.scales[0] += self.waiting_y[i] * self.waiting_y[i]
            for k in range(self.index.shape[0]):
                self.scales[1 + k] += x[self.index[k]] * x[self.index[k]]
        for problem in range(self.iterates.shape[0]):
            place = problem - self.grid.shape[0]
            squares = 0.0
            for i in range(n):
                x = &self.waiting[i, 0]
                prediction = dot(x, &self.iterates[problem, 0], d)
                if not is_sane(prediction, n_rows, self.scales[max(place + 1, 0)], 0.0):
                    return False
                residual = prediction - (self.waiting_y[i] if place < 0 else x[self.index[place]])
                self.residuals[problem, i] = residual
                squares += residual * residual
            if place < 0 and squares < least:
                least = squares
                self.chosen = problem
        return True

    cdef void move(self, double step_size, double power) noexcept nogil:
        """A proximal step of every problem, beta = soft(beta - eta g, eta lambda), and the means of the iterates."""
        cdef Py_ssize_t problem, place, n_penalties = self.grid.shape[0]
        cdef double t, step
        self.n_batches += 1
        t = self.n_batches
        step = step_size / pow(t, power)
        if step_size == 0.0 and self.longest > 0.0:
            step = 1.0 / (self.longest * pow(1.0 + t / self.gradient.shape[0], power))
        for problem in range(self.iterates.shape[0]):
            place = problem - n_penalties
            self.move_problem(problem, step, self.grid[problem if place < 0 else self.chosen])
            if place >= 0:
                self.iterates[problem, self.index[place]] = 0.0  # a column does not explain itself
        for place in range(self.averages.shape[0]):
            problem = self.chosen if place == 0 else n_penalties + place - 1
            average(&self.iterates[problem, 0], 1.0 / t, &self.averages[place, 0], self.gradient.shape[0])

    cdef void move_problem(self, Py_ssize_t problem, double step, double penalty) noexcept nogil:
        cdef Py_ssize_t i, j, d = self.gradient.shape[0], n = self.waiting.shape[0]
        cdef double share = 1.0 / n, threshold = step * penalty
        cdef double *gradient = &self.gradient[0]
        cdef double *coef = &self.iterates[problem, 0]
        for j in range(d):
            gradient[j] = 0.0
        for i in range(n):
            add_multiple(share * self.residuals[problem, i], &self.waiting[i, 0], gradient, d)
        for j in range(d):
            coef[j] = soft(coef[j] - step * gradient[j], threshold)

    cdef void add_to_sums(self, double[::1] zx, double[::1] zy, double[::1] zz, double[:, ::1] products) noexcept nogil:
        """Add a batch to the noise, judged by the mean, and to the sums of each inferred column."""
        cdef Py_ssize_t i, k, d = self.gradient.shape[0]
        cdef double residual, own, left
        cdef double *x
        for i in range(self.waiting.shape[0]):
            x = &self.waiting[i, 0]
            residual = self.waiting_y[i] - dot(x, &self.averages[0, 0], d)
            self.squares += residual * residual
            for k in range(self.index.shape[0]):
                own = x[self.index[k]]
                left = own - dot(x, &self.averages[k + 1, 0], d)
                zx[k] += left * own
                zy[k] += left * self.waiting_y[i]
                zz[k] += left * left
                add_multiple(left, x, &products[k, 0], d)


cdef void average(const double *iterate, double share, double *mean, Py_ssize_t d) noexcept nogil:
    """Let one more iterate have this share of a mean."""
    cdef Py_ssize_t j
    for j in range(d):
        mean[j] += share * (iterate[j] - mean[j])
