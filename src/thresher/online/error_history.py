"""How the error on new rows went while they came in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.text_table import data_frame, text_table


@dataclass(frozen=True, eq=False, repr=False)
class ErrorHistory:
    """Errors on rows that were predicted before they were learned, by parts of the stream. Prints as a table.

    Attributes
    ----------
    n_samples : ndarray of int
        Rows seen at the end of each part.
    n_predicted : ndarray of int
        Rows predicted in it.
    error : ndarray
        Root of their mean squared error, in units of the response.
    mean_error : ndarray
        The same for a model that predicts the mean of earlier rows, or zero if there is no intercept.
    """

    n_samples: Integers
    n_predicted: Integers
    error: Floats
    mean_error: Floats

    @classmethod
    def from_sums(cls, n_samples: Integers, n_predicted: Integers, sums: Floats) -> "ErrorHistory":
        """From running sums at the end of each part: rows predicted, and weights, squared errors and deviations."""
        parts = np.diff(sums, axis=0, prepend=0.0)
        with np.errstate(invalid="ignore", divide="ignore"):  # of rows without weight, and of values that overflowed
            roots = np.sqrt(parts[:, 1:] / parts[:, :1])
        return cls(n_samples, np.diff(n_predicted, prepend=0), roots[:, 0], roots[:, 1])

    @property
    def r2(self) -> Floats:
        """Share of the variance explained in each part; not a number if the response did not vary."""
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Floats = 1.0 - (self.error / self.mean_error) ** 2
        return np.where(np.isfinite(result), result, np.nan)

    def __len__(self) -> int:
        return len(self.n_samples)

    def __repr__(self) -> str:
        columns = zip(self.n_samples, self.n_predicted, self.error, self.mean_error, self.r2, strict=True)
        lines = [[str(n), str(m), f"{e:.4g}", f"{mean:.4g}", f"{r2:.3f}"] for n, m, e, mean, r2 in columns]
        return text_table(["rows", "predicted", "error", "error of mean", "R2"], lines, ())

    def to_frame(self) -> Any:
        """A pandas data frame, indexed by rows."""
        names = ("n_samples", "n_predicted", "error", "mean_error", "r2")
        return data_frame({name: getattr(self, name) for name in names}, "n_samples")
