"""Data sets with few rows: independent, correlated, one-hot and skewed columns, few effects or many, weak or strong."""

import numpy as np

ROWS = {200: (50, 100, 200, 500, 1000), 1000: (100, 300, 1000)}
ACTIVE = (5, 20, 60)
SNR = {200: (0.1, 0.5, 2.0, 10.0), 1000: (0.1, 1.0, 10.0)}
N_TEST = 1000


def toeplitz(rng, n, d, rho):
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def blocks(rng, n, d, size=10, rho=0.9):
    """Blocks of columns that are strongly correlated."""
    common = np.repeat(rng.standard_normal((n, d // size)), size, axis=1)
    return np.sqrt(rho) * common + np.sqrt(1.0 - rho) * rng.standard_normal((n, d))


def factors(rng, n, d, k=5):
    """Columns that share five factors, which explain half of their variance."""
    loadings = np.random.default_rng(d).standard_normal((k, d)) / np.sqrt(k)
    return (rng.standard_normal((n, k)) @ loadings + rng.standard_normal((n, d))) / np.sqrt(2.0)


def one_hot(rng, n, d, levels=10):
    """Categories of ten levels, of which some are rare: d columns."""
    share = 1.0 / np.arange(1.0, levels + 1.0)
    codes = rng.choice(levels, size=(n, d // levels), p=share / share.sum())
    return np.concatenate([codes[:, [j]] == np.arange(levels) for j in range(d // levels)], axis=1).astype(float)


def heavy(rng, n, d):
    """Skewed, heavy-tailed columns, each correlated with the next."""
    return np.exp(0.7 * toeplitz(rng, n, d, 0.5))


# Name: columns, share of the signal's variance that comes from small effects of all features.
DESIGNS = {
    "independent": (lambda rng, n, d: rng.standard_normal((n, d)), 0.0),
    "Toeplitz 0.5": (lambda rng, n, d: toeplitz(rng, n, d, 0.5), 0.0),
    "Toeplitz 0.9": (lambda rng, n, d: toeplitz(rng, n, d, 0.9), 0.0),
    "blocks": (blocks, 0.0),
    "factors": (factors, 0.0),
    "one-hot": (one_hot, 0.0),
    "skewed": (heavy, 0.0),
    "dense plus sparse": (lambda rng, n, d: toeplitz(rng, n, d, 0.5), 0.3),
}


def draw(design, n, d, n_active, snr, seed):
    """Rows, responses, test rows and their noiseless responses, all of the same model; noise has variance one."""
    columns, dense = DESIGNS[design]
    rng = np.random.default_rng((seed, list(DESIGNS).index(design), n, d, n_active, int(100 * snr)))
    X = columns(rng, n + N_TEST, d)
    scale = X.std(axis=0)
    scale[scale == 0.0] = 1.0
    effects = np.zeros(d)
    chosen = rng.choice(d, n_active, replace=False)
    kind = rng.integers(3)  # all equally large, normal, or decaying
    size = [np.ones(n_active), rng.standard_normal(n_active), 0.9 ** np.arange(n_active)][kind]
    effects[chosen] = size * rng.choice([-1.0, 1.0], n_active)
    fitted = X @ (effects / scale)
    signal = fitted / fitted.std()
    if dense:
        small = X @ (rng.standard_normal(d) / scale)
        signal = np.sqrt(1.0 - dense) * signal + np.sqrt(dense) * small / small.std()
    truth = np.sqrt(snr) * signal
    y = 1.0 + truth + rng.standard_normal(n + N_TEST)
    return X[:n], y[:n], X[n:], 1.0 + truth[n:]


def cases(d, repeats, seed):
    """All (design, n, n_active, snr, seed)."""
    return [
        (design, n, n_active, snr, seed + r)
        for r in range(repeats)
        for n in ROWS[d]
        for n_active in ACTIVE
        for snr in SNR[d]
        for design in DESIGNS
    ]
