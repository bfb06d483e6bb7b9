"""Independent truths: a few lines of NumPy each, written from the paper and from definitions, not from the code."""

import re
import struct

import numpy as np


def keep_largest(z, s):
    """Hard thresholding; ties go to the lowest index."""
    keep = np.lexsort((np.arange(len(z)), -np.abs(z)))[:s]
    result = np.zeros_like(z)
    result[keep] = z[keep]
    return result


def algorithm_1(X, y, s, K, eta, t0, every=1):
    """Algorithm 1, dense. Yields the iterate after each round.

    Sums are elementwise, so that two equal columns have bit-equal gradients and ties are exact.
    """
    d = X.shape[1]
    A, b, theta = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for i in range(len(X)):
        A += np.outer(X[i], X[i])
        b += X[i] * y[i]
        n = i + 1
        if n > t0 and (n - t0) % every == 0:
            t = (n - t0) // every
            for k in range(K):
                step = eta(t, k) if callable(eta) else eta
                theta = keep_largest(theta - step * ((A * theta).sum(axis=1) - b) / n, s)
            yield theta


def last(iterator):
    """The last element."""
    return list(iterator)[-1]


def design(rng, kind, n, d):
    """Rows of a kind that makes life hard."""
    X = rng.standard_normal((n, d))
    if kind == "correlated":
        for j in range(1, d):
            X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    elif kind == "duplicated":
        for j in range(d // 3):
            X[:, d - 1 - j] = X[:, j]
    elif kind == "late":  # some columns are constant at first
        X[: n // 2, ::3] = 0.0
    elif kind == "constant":
        X[:, ::4] = 1.5
    elif kind == "scaled":
        X *= np.exp(rng.normal(size=d))
    return X


def smoothness(X, t0):
    """The largest eigenvalue of X'X/n over the rounds: steps below its inverse do not amplify rounding errors."""
    sizes = {min(t0 + 2**i, len(X)) for i in range(20)}
    return 1.2 * max(np.linalg.eigvalsh(X[:n].T @ X[:n] / n)[-1] for n in sizes)


def keep_rank(z, r):
    """The best approximation of rank r, by a full decomposition."""
    u, s, vt = np.linalg.svd(z, full_matrices=False)
    return (u[:, :r] * s[:r]) @ vt[:r]


def keep_groups(z, labels, s):
    """The s groups of rows with the largest norms; ties go to the group that appears first."""
    names = list(dict.fromkeys(labels))
    norms = [np.linalg.norm(z[np.array(labels) == name]) for name in names]
    kept = [names[g] for g in np.lexsort((np.arange(len(names)), -np.array(norms)))[:s]]
    mask = np.isin(labels, kept)
    return np.where(mask if z.ndim == 1 else mask[:, None], z, 0.0)


def matrix_algorithm_1(X, Y, project, K, eta, t0, every=1):
    """Algorithm 1 for features X (n, p) and responses Y (n, q), dense, with any projection. The last iterate."""
    p, q = X.shape[1], Y.shape[1]
    A, B, theta = np.zeros((p, p)), np.zeros((p, q)), np.zeros((p, q))
    for i in range(len(X)):
        A += np.outer(X[i], X[i])
        B += np.outer(X[i], Y[i])
        n = i + 1
        if n > t0 and (n - t0) % every == 0:
            for k in range(K):
                step = eta((n - t0) // every, k) if callable(eta) else eta
                theta = project(theta - step * (A @ theta - B) / n)
    return theta


def completion_algorithm_1(rows, cols, values, shape, r, K, eta, t0, every):
    """Algorithm 1 for observed entries, dense, with a full decomposition per step. The last iterate."""
    W, S, theta = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for t in range(len(values)):
        W[rows[t], cols[t]] += 1.0
        S[rows[t], cols[t]] += values[t]
        n = t + 1
        if n > t0 and (n - t0) % every == 0:
            for k in range(K):
                step = eta((n - t0) // every, k) if callable(eta) else eta
                theta = keep_rank(theta - step * (W * theta - S) / n, r)
    return theta


def shown(value):
    """The name of a case: as it is printed, without the addresses that functions have."""
    return re.sub(r"<function \S+ at 0x[0-9a-f]+>", "function", str(value))


def _mixed(value):
    """The last steps of splitmix64, in Python's integers."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def folds_of(X, Y, n_folds):
    """The fold of each row: the sum of a hash of every number, responses first, hashed again."""
    folds = []
    for x, y in zip(X.reshape(len(X), -1), Y, strict=True):
        total = 0
        for j, value in enumerate([*np.atleast_1d(y), *x], 1):
            (bits,) = struct.unpack("<Q", struct.pack("<d", value))
            total += _mixed(bits * (_mixed(j * 0x9E3779B97F4A7C15 % 2**64) | 1) % 2**64)
        folds.append(_mixed(total % 2**64) % n_folds)
    return np.array(folds)
