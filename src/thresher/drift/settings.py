"""The constants of following a stream that changes, and where they come from.

They were chosen on streams of `benchmarks/drift_streams.py` with seeds 100 to 103; others judge them.
"""

import numpy as np

# Rows after which levels are updated; blocks also end where the buffer of the summary does, and at choices.
BLOCK = 32
# In rows; the last level counts all rows equally. For coefficients that wander, the best half-life is on a broad
# minimum: factors of four cost at most a quarter more than the best one.
HALF_LIVES = (60.0, 250.0, 1000.0, 4000.0, np.inf)
N_LEVELS = len(HALF_LIVES)
# Blocks between solutions of each level: about an eighth of its half-life.
PERIODS = (1, 1, 4, 16, 1)
# So many features are solved for after every block, m times as many after m blocks: O(s^2) for a row, as counting is.
OFTEN_SOLVED = 32
# Rows before there are levels.
FEWEST_ROWS = 256

# Variances of a change in a coefficient, over that of the noise, in units in which features have variance one.
VARIANCES = 4.0 ** np.arange(-8, 8)
# Added to the diagonal of correlation matrices, so that collinear features can be solved for.
JITTER = 1e-10
# Squares of residuals are at least this share of those of y, so that logarithms exist where nothing is left.
LEAST = 1e-12

# Learning rate and share of the mixture, per row; squared errors count up to so many times the variance of the noise.
RATE, SHARE, CAP = 0.1, 1 / 5000, 16.0
# Before there is evidence.
PRIOR = np.array([0.125, 0.125, 0.125, 0.125, 0.5])
# Half-life, in rows, of the mean squared errors that tell the variance of the noise, and of the evidence of the gate.
ERROR_HALF_LIFE, EVIDENCE_HALF_LIFE = 1000.0, 5000.0
# Standard errors by which the mixture must have been better than all rows, with so many rows of doubt.
ENOUGH, DOUBT = 5.0, 100.0

# Half-life, in rows, of the products of all features with the errors. Squares of t statistics, over log(d), from which
# a feature is followed, and below which it is not followed any more.
SCREEN_HALF_LIFE, ENTER, LEAVE = 200.0, 4.0, 1.0
# Features that may start being followed at a time.
MOST_AT_ONCE = 8

# The last rows that are kept: two half-lives of the shortest level, or as many as features are chosen from.
LAST_ROWS, MORE_ROWS = 128, 1024
# The half-life of the weights with which features are chosen from them, and squares of t statistics, over log(d), from
# which a feature is followed.
RECENT_HALF_LIFE, ENTER_RECENT = 100.0, 3.0

# A break: by how many times errors must have grown over the noise, twice the log of a Bayes factor, and the numbers of
# rows since that are tried.
BREAK_ERROR, BREAK_EVIDENCE, BREAK_ROWS = 2.0, 20.0, (16, 32, 48, 64, 96, 128, 192)
