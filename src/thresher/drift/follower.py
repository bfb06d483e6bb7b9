"""Follows a stream that may change, beside the estimate from all rows."""

from dataclasses import dataclass, replace

import numpy as np

from thresher._utils.arrays import Floats, Integers, padded
from thresher._utils.records import Records
from thresher.drift import levels as of_levels
from thresher.drift._score import is_finite
from thresher.drift.breaks import rows_since_break
from thresher.drift.levels import Levels
from thresher.drift.mixing import Mixing, blocks_in, repeated
from thresher.drift.recent import Recent
from thresher.drift.settings import BLOCK, BREAK_ERROR, LAST_ROWS, LEAVE, MORE_ROWS, N_LEVELS
from thresher.io.schema import Array, Count, Flag, Is, List, Number, Schema
from thresher.summaries.gram import Gram

# Records of the past at the most; when there are more, every other one is dropped.
MOST_RECORDS = 256


@dataclass(frozen=True, eq=False)
class DriftRecord:
    """How things stood after some rows.

    Attributes
    ----------
    n_samples : int
        Rows until then.
    detected : bool
        Whether the stream was seen to change, so that coefficients followed recent rows.
    effective_rows : float
        How many rows the coefficients rested on: all of them, unless drift was detected.
    support : ndarray of int
        The features in use.
    values : ndarray
        Their coefficients.
    """

    _schema = Schema(
        n_samples=Count(),
        detected=Flag(),
        effective_rows=Number(least=0.0),
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        values=Array("support"),
    )
    n_samples: int
    detected: bool
    effective_rows: float
    support: Integers
    values: Floats


class DriftHistory(Records[DriftRecord]):
    """Records of a stream that may change, the oldest first. A list that prints as a table.

    Parameters
    ----------
    records : iterable of DriftRecord
    names : sequence of str, optional
        The names of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1200, 10))
    >>> y = np.where(np.arange(1200) < 600, 1.0, -1.0) * X[:, 3] + rng.standard_normal(1200)
    >>> SparseRegressor().partial_fit(X, y).drift_history_
    rows  detected  effective rows  came   left
     384     False             384  x3
     512     False             512
     640     False             640
     768      True             176
     896      True             174
    1024      True             176  x7 x9
    1152      True             175
    """

    _columns = (("detected", "detected", ""), ("effective rows", "effective_rows", ".0f"))

    @property
    def changes(self) -> list[int]:
        """Row counts at which drift was detected: of each first record in a stretch in which it was."""
        before = [False, *(record.detected for record in self)]
        return [record.n_samples for record, was in zip(self, before, strict=False) if record.detected and not was]


@dataclass(eq=False)
class Follower:
    """Levels, their mixture, and the features that are followed besides the support of all rows.

    Blocks of rows end at fixed places: every 32 rows in the buffer of the summary, where it is folded, and where the
    support is chosen. So the state does not depend on how rows were cut into calls.
    """

    _schema = Schema(
        lambda f: f.mixing.past.shape[1:] == f.levels.coef.shape,
        lambda f: not len(f.levels.features) or f.levels.features[-1] < len(f.recent.origin),
        lambda f: all(a.n_samples <= b.n_samples for a, b in zip(f.records, f.records[1:], strict=False)),
        lambda f: all(not len(r.support) or r.support[-1] < len(f.recent.origin) for r in f.records),
        lambda f: np.isin(f.support, f.levels.features).all(),
        levels=Is(Levels),
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        ridge=Array("support", least=0.0, shared=True) | None,
        mixing=Is(Mixing),
        may_add=Flag(),
        errors=Array("block"),
        n_done=Count(most="block"),
        n_kept=Count(most="n_done"),
        records=List(Is(DriftRecord)),
        spacing=Count(1),
        n_folds=Count(),
        recent=Is(Recent),
    )
    levels: Levels
    support: Integers  # of all rows, when it was last chosen on schedule
    ridge: Floats | None  # and its penalties
    mixing: Mixing
    may_add: bool  # whether other features than those of the support may be followed
    errors: Floats  # of the rows in the buffer, times sqrt(w)
    n_done: int  # rows of the buffer that count
    n_kept: int  # of these, rows that are among the recent ones
    records: list[DriftRecord]
    recent: Recent
    spacing: int = 1  # folds between records
    n_folds: int = 0

    @classmethod
    def start(
        cls,
        summary: Gram,
        support: Integers,
        ridge: Floats | None,
        centred: bool,
        horizon: int,
        may_add: bool,
        full: bool = False,
    ) -> "Follower":
        """Begin with all rows so far, counted equally."""
        levels = of_levels.start(summary, support, centred)
        levels.follow(support, ridge)
        levels.refit()
        state = summary.state
        return cls(
            levels=levels,
            support=support,
            ridge=ridge,
            mixing=Mixing.new(levels.coef, horizon),
            may_add=may_add,
            errors=np.zeros(len(state.buffer)),
            n_done=state.n_buffered,
            n_kept=state.n_buffered,
            records=[],
            recent=Recent.new(summary, centred, MORE_ROWS if full else LAST_ROWS),
        )

    def fits(self, summary: Gram) -> bool:
        """Whether it can go on with a summary."""
        state = summary.state
        return (
            len(self.recent.origin) == summary.n_features
            and len(self.errors) == len(state.buffer)
            and self.n_done <= state.n_buffered
            and (not self.records or self.records[-1].n_samples <= summary.n_samples)
        )

    @property
    def full(self) -> bool:
        """Whether to look for breaks, and choose features from more rows."""
        return len(self.recent.rows) == MORE_ROWS

    @property
    def detected(self) -> bool:
        """Whether recent rows predict better than all rows."""
        return self.mixing.is_open

    def rows_in_use(self, summary: Gram) -> float:
        """How many rows the coefficients in use rest on: all rows, or those of the mixture once drift was detected."""
        if not self.detected:
            return summary.weight
        return min(self.mixing.effective_rows(self.levels.n_rows), summary.weight)

    def coefficients(self, summary: Gram) -> tuple[Floats, float]:
        """Coefficients and intercept of the mixture, from all rows so far: also from those that fill no block yet."""
        rows = self.levels.rows(summary, self.n_done, summary.state.n_buffered)
        values, intercept = self.levels.with_rows(rows).coefficients(self.mixing.weights)
        coef = np.zeros(summary.n_features)
        coef[self.levels.features] = values
        return coef, intercept

    def absorb(self, summary: Gram, until_end: bool = False) -> None:
        """Count the rows of the buffer in full blocks; all of them at its end, or if told so."""
        n = summary.state.n_buffered
        until_end = until_end or n == len(self.errors)
        while self.n_done < n:
            stop = min(self.n_done - self.n_done % BLOCK + BLOCK, n)
            if stop % BLOCK and not until_end:
                break
            rows = self.levels.rows(summary, self.n_done, stop)
            errors, noise = self.errors[self.n_done : stop], self.mixing.noise if self.full else 0.0
            self.mixing.score(rows, errors)
            self.levels.add(rows)
            self.mixing.remember(self.levels.coef)
            self.n_done = stop
            if noise and errors @ errors > BREAK_ERROR * noise * (rows[:, 0] @ rows[:, 0]):
                self._look_for_break(summary, noise)
            if self.full and self.detected:
                self._keep(summary)
                if found := self._found(summary):
                    self._follow(summary, found)
        if until_end:
            self._keep(summary)

    def _keep(self, summary: Gram) -> None:
        """Keep the rows that came since; "auto" needs none before drift is detected, as no features join."""
        if self.full or self.detected:
            self.recent.add(summary, self.n_kept, self.n_done)
        else:
            self.recent.skip(self.n_done - self.n_kept)
        self.n_kept = self.n_done

    def rows_until_look(self, summary: Gram) -> int:
        """How many more rows the summary may take at once: it must know no more rows than levels do, if they move."""
        n = summary.state.n_buffered
        return BLOCK - n % BLOCK if self.full else len(self.errors)

    def after_fold(self, summary: Gram) -> bool:
        """Begin a new buffer; other features may be followed now. False if it cannot go on."""
        self.n_done, self.n_kept, self.n_folds = 0, 0, self.n_folds + 1
        if len(self.errors) != len(summary.state.buffer):  # the first one was longer, or there are more columns
            self.errors = np.zeros(len(summary.state.buffer))
        if self.detected and self.may_add:
            found = [] if self.full else self._found(summary)
            if found or len(self.levels.features) > len(self.support):
                self._follow(summary, found)
        fine = self.is_finite()
        if fine and self.n_folds % self.spacing == 0:
            self._note(summary)
        return fine

    def choose(self, summary: Gram, support: Integers, ridge: Floats | None) -> bool:
        """Take another support of all rows. False if it cannot go on."""
        self.absorb(summary, until_end=True)
        self.support, self.ridge = support, ridge
        self._follow(summary, [])
        return self.is_finite()

    def is_finite(self) -> bool:
        """Whether all went well: values may be as large as summaries take them."""
        levels, mixing = self.levels, self.mixing
        return is_finite(levels.moments, levels.coef, mixing.weights, mixing.losses)

    def widened(self, summary: Gram) -> "Follower":
        """The same for a summary with more columns, which were zero so far."""
        errors = padded(self.errors, len(summary.state.buffer))
        return replace(self, errors=errors, recent=self.recent.widened(summary.n_features))

    def with_horizon(self, horizon: int) -> "Follower":
        """The same, predicting so many rows ahead from now on."""
        if len(self.mixing.past) == blocks_in(horizon):
            return self
        return replace(self, mixing=replace(self.mixing, past=repeated(self.levels.coef, horizon), at=0))

    def _look_for_break(self, summary: Gram, noise: float) -> None:
        """Forget older rows if coefficients changed at once, where errors are large beside the noise before."""
        self._keep(summary)
        weights = self.mixing.weights if self.detected else _ALL_ROWS
        ago = rows_since_break(self.recent, self.levels, weights @ self.levels.coef, noise)
        if ago:
            self.recent.since = self.recent.n_rows - ago
            self.levels.restart(self.recent)
            self.mixing.reopen()
            self.mixing.restart(self.levels.coef)

    def with_full(self, summary: Gram, full: bool) -> "Follower":
        """The same with another choice of `full`; rows are kept from now on."""
        if full == self.full:
            return self
        recent = Recent.new(summary, self.levels.centred, MORE_ROWS if full else LAST_ROWS)
        return replace(self, recent=recent, n_kept=self.n_done)

    def _found(self, summary: Gram) -> list[int]:
        return self.recent.candidates(summary, self.levels.features, self.levels.centred)

    def _follow(self, summary: Gram, found: list[int]) -> None:
        """Follow the support, these features, and others while their coefficients are significant."""
        levels, features = self.levels, self.support
        if self.detected and self.may_add:
            stay = levels.is_significant(self.mixing.weights, LEAVE * np.log(max(summary.n_features, 2)))
            features = np.union1d(np.union1d(self.support, levels.features[stay]), np.array(found, np.intp))
        if np.array_equal(features, levels.features):
            levels.follow(self.support, self.ridge)
            return
        self.levels = of_levels.moved(levels, summary, features, self.recent)
        self.levels.follow(self.support, self.ridge)
        self.levels.refit()
        self.mixing.restart(self.levels.coef)

    def _note(self, summary: Gram) -> None:
        values, _ = self.levels.coefficients(self.mixing.weights if self.detected else _ALL_ROWS)
        kept, features = np.flatnonzero(values), self.levels.features
        record = DriftRecord(summary.n_samples, self.detected, self.rows_in_use(summary), features[kept], values[kept])
        self.records.append(record)
        if len(self.records) > MOST_RECORDS:
            self.records, self.spacing = self.records[1::2], 2 * self.spacing


_ALL_ROWS: Floats = np.eye(N_LEVELS)[-1]
