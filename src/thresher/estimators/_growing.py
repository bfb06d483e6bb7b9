"""Columns that come while rows do."""

from typing import Any

from thresher.estimators._rows import RowStreaming


class Growing(RowStreaming):
    """An estimator whose rounds may gain columns that were zero in every row so far.

    What it learns is what one learns that saw all columns, with zeros, from the first row on; but for a size that is
    chosen, since criteria count the columns that are known.
    """

    sparsity: int | str
    # Whether columns may yet come, so that it is no mistake to ask for more features than there are.
    _growing = False

    def _learn(self, rows: Any, responses: Any, weights: Any) -> None:
        """``partial_fit`` on rows that were checked elsewhere; columns beyond those known are new."""
        n, d = rows.shape
        if d == getattr(self, "n_features_in_", 0) and self._as_adopted():
            steps = self._steps(n)
        else:
            with self._unchanged_by_failure():
                self._check_parameters()
                if not hasattr(self, "summary_"):
                    self._growing = True
                    self._forget_features(d)
                    self._start(self._new_summary(rows, responses))
                elif d > self.n_features_in_:
                    self._widen(d)
                steps = self._prepare(n)
        self._take(rows, responses, weights, steps, one=n == 1 and self._solved.groups is None)

    def _widen(self, n_features: int) -> None:
        """Append columns of zeros; all that was learned stays."""
        with self._unchanged_by_failure():
            self._adopt_parameters()
            if self._solved.groups is not None:
                raise ValueError("groups has a label for each column; with groups, no column may come later.")
            size = self._rounds.size if isinstance(self.sparsity, str) else int(min(self.sparsity, n_features))
            self._rounds = self._rounds.widened(n_features, size)
            self.summary_ = self._rounds.summary
            self._solved = self._problem()
            self._forget_features(n_features)
            self._publish()
