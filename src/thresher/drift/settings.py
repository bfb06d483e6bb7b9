"""The constants of following a stream that changes, and where they come from.

They were chosen on streams of `benchmarks/drift_streams.py` with seeds 100 to 105, and on the eleven real ones of
`benchmarks/drift_constants.py`; other seeds and other real streams judge them.
"""

import numpy as np

# Rows after which levels are updated; blocks also end where the buffer of the summary does, and at choices.
BLOCK = 32
# In rows; the last level counts all rows equally, the first follows the level of y alone. For coefficients that wander,
# the best half-life is on a broad minimum: factors of four cost at most a quarter more than the best one.
HALF_LIVES = (15.0, 60.0, 250.0, 1000.0, 4000.0, np.inf)
N_LEVELS = len(HALF_LIVES)
# Blocks between solutions of each level: about an eighth of its half-life.
PERIODS = (1, 1, 1, 4, 16, 1)
# So many features are solved for after every block, m times as many after m blocks: O(s^2) for a row, as counting is.
OFTEN_SOLVED = 32
# Rows before there are levels.
FEWEST_ROWS = 256

# Variances of a change in a coefficient, over that of the noise, in units in which features have variance one.
VARIANCES = 4.0 ** np.arange(-8, 8)
# A single coefficient changes only if at least so many rows carry its feature.
FEWEST_CARRIERS = 4.0
# Added to the diagonal of correlation matrices, so that collinear features can be solved for.
JITTER = 1e-10
# Mean squared errors below this are rounding, and what the jitter does, in units in which y has variance one.
ROUNDING = 1e-18
# Squares of residuals are at least this share of those of y, so that logarithms exist where nothing is left.
LEAST = 1e-12

# Squared errors count up to so many times the variance of the noise. With this rate, their loss is exp-concave up to
# there, so that the mixture is nearly as good as the best level. The share is returned with every row.
CAP, RATE, SHARE = 16.0, 1 / 32, 1 / 5000
# If the squared errors of most rows exceed so many variances of the noise at every level, these rows tell the scale.
FAR = 100.0
# Before there is evidence.
PRIOR = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
# Half-life, in rows, of the mean squared errors that tell the variance of the noise, and of the evidence of the gate.
ERROR_HALF_LIFE, EVIDENCE_HALF_LIFE = 1000.0, 5000.0
# Standard errors by which the mixture must have been better than all rows, with so many rows of doubt.
ENOUGH, DOUBT = 2.0, 100.0

# The last rows that are kept: two half-lives of the shortest level of all coefficients, or eight times as many.
LAST_ROWS, MORE_ROWS = 128, 1024
# Features are chosen from them with weights of this half-life, so many at a time. Squares of t statistics, over log(d),
# from which a feature is followed, and below which it is not followed any more.
RECENT_HALF_LIFE, MOST_AT_ONCE, ENTER, LEAVE = 100.0, 8, 3.0, 1.0

# A break: by what factor the mean squared error must exceed the noise before, twice the log of a Bayes factor, the
# numbers of rows since that are tried, and how many of them there must be for each coefficient.
BREAK_ERROR, BREAK_EVIDENCE, BREAK_ROWS, ROWS_PER_COEFFICIENT = 2.0, 40.0, (16, 32, 48, 64, 96, 128, 192), 2
