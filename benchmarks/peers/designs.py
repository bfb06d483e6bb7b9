"""The synthetic streams: the paper's designs, and the Toeplitz one with fewer and with more columns."""

from thresher.io.sources.synthetic import SparseLinearStream

CHECKPOINTS = (300, 1000, 3000, 10_000)
# Rows that nobody learns from, for the error of predictions.
N_NEW = 1000
# The paper's design with a condition number of 500.
SPECTRUM = (500.0, 100.0, *range(10, 0, -1))
DESIGNS = {
    "identity, d = 1000": {},
    "Toeplitz 0.5, d = 1000": {"correlation": 0.5},
    "kappa 500, d = 1000": {"spectrum": SPECTRUM},
    "strong signal, d = 1000": {"n_active": 1000, "signal": 0.4, "threshold": 1.0},
    "Toeplitz 0.5, d = 200": {"n_features": 200, "correlation": 0.5},
    "Toeplitz 0.5, d = 4000": {"n_features": 4000, "correlation": 0.5},
}
# Seeds of the runs that are reported: as many as time allows, since the median of few is a lottery.
N_SEEDS = {"d = 200": 9, "d = 1000": 5, "d = 4000": 3}
# Other seeds, on which methods are tuned.
TUNING_SEEDS = (1001, 1002)


def draw(design, seed):
    """Rows, responses, true coefficients and new rows."""
    stream = SparseLinearStream(seed=seed, **DESIGNS[design])
    return *stream.draw(CHECKPOINTS[-1]), stream.coef, stream.draw(N_NEW)[0]


def seeds(problem):
    """Seeds for a problem."""
    return range(N_SEEDS.get(problem.split(", ")[-1], 3))
