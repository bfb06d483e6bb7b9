"""Methods that learn from one row at a time: a residual, then O(d) for the update.

Each function learns from rows and changes the arrays that it is given. It returns the number of rows, or how many came
before the one with which the estimate was seen to have diverged. The classes named after the methods define the
symbols. A step size, gamma or ridge of zero stands for "auto".
"""

from libc.math cimport INFINITY, NAN, fabs, isnan, pow, sqrt

from thresher._utils.reductions cimport dot

from thresher.io.schema import Count, Number, Schema

# An estimate has diverged when a prediction is so many times larger than the root mean square of the responses, ...
ABSURD = 1e4
# ... or when predictions have been, in the mean square, so many times worse than zeros.
HOPELESS = 1e4
cdef double absurd = ABSURD, hopeless = HOPELESS


cdef bint is_sane(double prediction, double n_rows, double squares, double errors) noexcept nogil:
    """Whether an estimate that predicts this, after such sums of squares over `n_rows` rows, has not diverged."""
    return fabs(prediction) * sqrt(n_rows) <= absurd * sqrt(squares) and errors <= hopeless * squares


cdef class RowTotals:
    """What is known of a stream of single rows: how many there were, and sums of squares."""

    _schema = Schema(
        n_rows=Count(),
        sum_yy=Number(least=0.0),
        sum_errors=Number(least=0.0),
        longest=Number(least=0.0),
    )

    def __getstate__(self):
        return {
            "n_rows": self.n_rows,
            "sum_yy": self.sum_yy,
            "sum_errors": self.sum_errors,
            "longest": self.longest,
        }

    def __setstate__(self, state):
        self.n_rows, self.longest = state["n_rows"], state["longest"]
        self.sum_yy, self.sum_errors = state["sum_yy"], state["sum_errors"]

    def take_row(self, const double[::1] x, double y, const double[::1] coef):
        """Count a row and return its residual x'coef - y: see `take`."""
        if x.shape[0] != coef.shape[0]:
            raise ValueError("The row has another length than the coefficients.")
        return self.take(&x[0], y, &coef[0], coef.shape[0])

    cdef double take(self, const double *x, double y, const double *coef, Py_ssize_t d) noexcept nogil:
        """Count a row and return its residual x'coef - y; NaN, and nothing is counted, if the estimate has diverged.

        So it does if the square of the gradient would overflow.
        """
        cdef double prediction = dot(x, coef, d), length = dot(x, x, d), error = prediction - y
        cdef double squares = self.sum_yy + y * y, errors = self.sum_errors + error * error
        if not (is_sane(prediction, self.n_rows + 1.0, squares, errors) and error * error * length < INFINITY):
            return NAN
        self.n_rows += 1
        self.sum_yy, self.sum_errors = squares, errors
        self.longest = max(self.longest, length)
        return error


cdef Py_ssize_t width(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] second,
    double[::1] third,
) except -1:
    """The number of columns, of rows and a state that fit together."""
    cdef Py_ssize_t d = X.shape[1]
    if totals is None or X.shape[0] != y.shape[0] or not coef.shape[0] == second.shape[0] == third.shape[0] == d:
        raise ValueError("The rows and the state of the method do not fit together.")
    return d


cpdef Py_ssize_t ada_grad_l1(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] gradients,
    double[::1] squares, double penalty, double step, double delta, bint dual,
) except -1:
    """With r = eta / (delta + sqrt(sum g^2)): w = -r soft(sum g, t lambda), or w = soft(w - r g, r lambda)."""
    cdef Py_ssize_t i, j, d = width(X, y, totals, coef, gradients, squares)
    cdef double error, g, rate, threshold
    with nogil:
        for i in range(X.shape[0]):
            error = totals.take(&X[i, 0], y[i], &coef[0], d)
            if isnan(error):
                return i
            threshold = totals.n_rows * penalty
            if dual:
                for j in range(d):
                    g = error * X[i, j]
                    gradients[j] += g
                    squares[j] += g * g
                    coef[j] = -step * soft(gradients[j], threshold) / (delta + sqrt(squares[j]))
            else:
                for j in range(d):
                    g = error * X[i, j]
                    gradients[j] += g
                    squares[j] += g * g
                    rate = step / (delta + sqrt(squares[j]))
                    coef[j] = soft(coef[j] - rate * g, rate * penalty)
    return X.shape[0]


cpdef Py_ssize_t dual_averaging(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] mean,
    double penalty, double gamma, double rho,
) except -1:
    """w = -(t / beta) soft(mean of g, lambda + rho beta / t)."""
    cdef Py_ssize_t i, j, d = width(X, y, totals, coef, mean, mean)
    cdef double error, t, beta, share, factor, threshold
    with nogil:
        for i in range(X.shape[0]):
            error = totals.take(&X[i, 0], y[i], &coef[0], d)
            if isnan(error):
                return i
            t = totals.n_rows
            beta = gamma * sqrt(t) if gamma > 0.0 else totals.longest * sqrt(1.0 + t / d)
            if beta == 0.0:  # nothing but zeros so far
                continue
            share, factor, threshold = 1.0 / t, t / beta, penalty + rho * beta / t
            for j in range(d):
                mean[j] += share * (error * X[i, j] - mean[j])
                coef[j] = -factor * soft(mean[j], threshold)
    return X.shape[0]


cpdef Py_ssize_t ftrl_proximal(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] z,
    double[::1] squares, double l1, double l2, double alpha, double beta,
) except -1:
    """n = sum g^2; z += g - (change of sqrt(n)) / alpha w; w = -soft(z, l1) / ((beta + sqrt(n)) / alpha + l2)."""
    cdef Py_ssize_t i, j, d = width(X, y, totals, coef, z, squares)
    cdef double error, g, before, root, rate = 1.0 / alpha
    with nogil:
        for i in range(X.shape[0]):
            error = totals.take(&X[i, 0], y[i], &coef[0], d)
            if isnan(error):
                return i
            for j in range(d):
                g = error * X[i, j]
                before = sqrt(squares[j])
                squares[j] += g * g
                root = sqrt(squares[j])
                z[j] += g - rate * (root - before) * coef[j]
                coef[j] = -soft(z[j], l1) / (rate * (beta + root) + l2)
    return X.shape[0]


cpdef Py_ssize_t proximal_steps(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] mean,
    double penalty, double step, double power,
) except -1:
    """w = soft(w - eta_t g, eta_t lambda), and the mean of the iterates."""
    cdef Py_ssize_t i, j, d = width(X, y, totals, coef, mean, mean)
    cdef double error, t, eta, share
    with nogil:
        for i in range(X.shape[0]):
            error = totals.take(&X[i, 0], y[i], &coef[0], d)
            if isnan(error):
                return i
            t = totals.n_rows
            eta = step / pow(t, power)
            if step == 0.0 and totals.longest > 0.0:
                eta = 1.0 / (totals.longest * pow(1.0 + t / d, power))
            share = 1.0 / t
            for j in range(d):
                coef[j] = soft(coef[j] - eta * error * X[i, j], eta * penalty)
                mean[j] += share * (coef[j] - mean[j])
    return X.shape[0]


cpdef Py_ssize_t streaming_sparse_regression(
    const double[:, ::1] X, const double[::1] y, RowTotals totals, double[::1] coef, double[::1] dual,
    double[::1] mean, double penalty, double alpha, double ridge,
) except -1:
    """dual += alpha w - g, then w = soft(dual, lambda sqrt(t + 1)) / (ridge + alpha t), and a mean of the iterates."""
    cdef Py_ssize_t i, j, d = width(X, y, totals, coef, dual, mean)
    cdef double error, t, threshold, scale, share
    with nogil:
        for i in range(X.shape[0]):
            error = totals.take(&X[i, 0], y[i], &coef[0], d)
            if isnan(error):
                return i
            t = totals.n_rows
            threshold = penalty * sqrt(t + 1.0)
            scale = 1.0 / ((ridge if ridge > 0.0 else totals.longest) + alpha * t)
            share = 2.0 / (t + 1.0)  # of w_t in the mean with weights 1, 2, ..., t
            for j in range(d):
                mean[j] += share * (coef[j] - mean[j])
                dual[j] += alpha * coef[j] - error * X[i, j]
                coef[j] = scale * soft(dual[j], threshold)
    return X.shape[0]
