"""Streaming completion of a partly observed matrix."""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.entry_table import EntryColumns, entry_blocks, refuse_names
from thresher._utils.locks import locked
from thresher._utils.warnings import warn_caller
from thresher.estimators._entry_tables import SIDES, EntryTables, check_count
from thresher.estimators._ids import IdMap, are_ids, as_ids
from thresher.estimators._validation import checked_shape
from thresher.io.schema import Count, Dict, Flag, Is, Of, Schema, Text, Tuple
from thresher.online.samples import Observations, Samples
from thresher.online.step_size import StepCount, StepSize
from thresher.selection.completion_ranks import CompletionRanks
from thresher.selection.criteria import Criterion, Method
from thresher.selection.selecting import SelectingRounds
from thresher.summaries.entries import Entries, Indices, check_entries, check_indices


class Shown(NamedTuple):
    """The estimate as users see it."""

    shrink: bool
    coef: Floats
    factors: tuple[Floats, Floats, Floats]
    offset: float
    row_offsets: Floats
    col_offsets: Floats
    seen: dict[str, NDArray[np.bool_]]


class MatrixCompleter(EntryTables):
    r"""The unobserved entries of a matrix of low rank, kept current while observations stream in.

    After every block of observations :math:`(i_t, j_t, v_t)` it takes a few projected gradient steps towards

    .. math:: \min_\Theta \; \frac{1}{2 n} \sum_{t \le n} (v_t - \Theta_{i_t j_t})^2
              \quad \text{subject to} \quad \operatorname{rank}(\Theta) \le r

    over *all* observations so far; entries may be observed repeatedly. ``fit`` on observations in memory is
    singular value projection (Jain, Meka and Dhillon, 2010), and ends where iterated SVD imputation does.

    A step costs O(d1 d2 r). Memory is about 60 d1 d2 bytes, twice that in passing, and does not grow with the stream.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Rank of the matrix, r. ``"auto"`` chooses it from the data, again whenever there are a quarter more
        observations.
    selection : {"noise_edge", "ebic"} or a NoiseEdge or Ebic, default="noise_edge"
        How ``"auto"`` chooses: a further rank must explain more than it could make of noise; or by the BIC.
    shape : tuple of int, optional
        (d1, d2). Without it the matrix grows with the indices, or with new ids.
    offsets : bool, default=False
        Whether every row and column has an offset, improved by a sweep of alternating least squares in each round, so
        that only what is left has to be of low rank.
    shrink : bool, default=True
        Whether `coef_` and predictions use singular values reduced by the noise in them, which is estimated from the
        residuals; see Notes. The steps never use them.
    n_steps : int or callable, default=5
        Steps per round, K; or a callable that is called with the round t (from one) and returns K_t.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one for which the loss provably does not rise. A
        callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Observations absorbed before the first round, t0.
    round_size : int, optional
        Observations per round. By default one for every 500 cells, at most 2 (d1 + d2). Observations short
        of a full round wait for the next call, or for ``finish``.
    start : array-like of shape (d1, d2) or a fitted model, optional
        Theta_0: where the first round, or ``fit``, starts; of a model, its `coef_`. Zero by default. A start that is
        not in the set is projected onto it. This needs `shape`.
    tol : float, default=1e-6
        ``fit`` stops when a round moves the estimate less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many rounds at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (d1, d2)
        The matrix without its offsets.
    factors_ : tuple of ndarray
        U (d1, r), singular values (r,) and V' (r, d2) of `coef_`.
    offset_ : float
        The global offset; 0.0 if ``offsets=False``.
    row_offsets_, col_offsets_ : ndarray of shape (d1,) and (d2,)
        What is added to it in each row and column: zero on average over the observations.
    row_ids_, col_ids_ : list
        Ids in the order of rows and columns, if ids were given.
    rank_ : int
        The r in use: the one chosen, or `rank`.
    selection_ : Selection
        The last choice of r and its criterion for every r, with ``rank="auto"``.
    selection_history_ : History
        Observations and r whenever there were a quarter more observations.
    step_size_ : float
        The last step taken.
    n_samples_seen_, n_rounds_ : int
        Observations absorbed and rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : Entries
        What the observations left behind.

    Notes
    -----
    ``partial_fit`` gives bit-identical results however the observations are cut into calls. With ``offsets=False``,
    ``shrink=False`` and a float `step_size` the estimate is that of Algorithm 1, to 1e-8.

    Least squares inflates singular values: an estimated :math:`\hat s_i` contains noise of about
    :math:`\hat\tau^2 (d_1 + d_2 - 2 r) / \hat s_i`, where :math:`\hat\tau^2` is the residual variance over
    the observations per cell. With `shrink`, this is subtracted, in full once there are twice as many observations
    as parameters. A weight counts like so many observations.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    P. Jain, R. Meka and I. S. Dhillon (2010). Guaranteed rank minimization via singular value projection.
    Advances in Neural Information Processing Systems 23.

    Examples
    --------
    >>> from thresher import MatrixCompleter
    >>> rows = ["ann", "ann", "bob", "bob", "cat"]
    >>> cols = ["tea", "milk", "tea", "milk", "tea"]
    >>> model = MatrixCompleter(rank=1).fit(rows, cols, [1.0, 2.0, 2.0, 4.0, 3.0])
    >>> model.predict(["cat"], ["milk"]).round(2)
    array([6.])
    """

    _schema = Schema(
        lambda model: model.rank_ == min(model._rounds.inner.rank, *model.summary_.shape),
        lambda model: model._rounds.family == model._family(),
        lambda model: all(len(ids) <= d for ids, d in zip(*model._sides(), strict=True)),
        summary_=Is(Entries, shared=True),
        _ids=Dict(Is(IdMap), keys=Text(*SIDES)),
        _solved=Tuple(Count(1) | None, Of(Method) | None, Flag(), Flag()),
        rank_=Count(1),
    )
    _transient: ClassVar[tuple[str, ...]] = (*EntryTables._transient, "_shown")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **EntryTables._parameter_constraints,
        "shape": [tuple, list, None],
        "offsets": ["boolean"],
        "shrink": ["boolean"],
        "round_size": [Interval(Integral, 1, None, closed="left"), None],
    }
    _summary_type = Entries
    summary_: Entries
    _ids: dict[str, IdMap]

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        selection: str | Method = "noise_edge",
        shape: tuple[int, int] | None = None,
        offsets: bool = False,
        shrink: bool = True,
        n_steps: StepCount = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int | None = None,
        start: ArrayLike | BaseEstimator | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.rank = rank
        self.selection = selection
        self.shape = shape
        self.offsets = offsets
        self.shrink = shrink
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.start = start
        self.tol = tol
        self.max_iter = max_iter

    # -- fitting ---------------------------------------------------------------------------------------

    def _new_summary(self, observed: Observations) -> Entries:
        return Entries(checked_shape(self.shape) or (1, 1))

    def _summarised(self, observed: Observations) -> Entries:
        self._learn_ids()
        reach = int(observed.rows.max()) + 1, int(observed.cols.max()) + 1
        entries = Entries(checked_shape(self.shape) or reach)
        return entries.add(observed.rows, observed.cols, observed.values, observed.weights)

    def _absorb(self, samples: Samples, plan: Floats) -> None:
        self._learn_ids()
        super()._absorb(samples, plan)

    def _learn_ids(self) -> None:
        """Take up the ids of observations that were checked."""
        for side, new in self.__dict__.pop("_fresh").items():
            self._ids[side].learn(new)

    def _check(self, rows: Any, cols: Any, values: Any, sample_weight: Any, reset: bool) -> Observations:
        """Observations by index. Decides at first whether there are ids; new ones wait in `_fresh`, with numbers."""
        places: list[Any] = []
        fresh: dict[str, dict[Any, int]] = {}
        ids = {side: IdMap() for side, values_ in zip(SIDES, (rows, cols), strict=True) if are_ids(values_)}
        if not reset:
            self._problem()  # a new shape may contradict the old
            if set(ids) != set(self._ids):
                wrong = next(side for side in SIDES if (side in ids) != (side in self._ids))
                raise ValueError(
                    f"{wrong} holds {'ids' if wrong in ids else 'indices'}; before they were "
                    f"{'indices' if wrong in ids else 'ids'}."
                )
            ids = self._ids
        for side, given in zip(SIDES, (rows, cols), strict=True):
            if side in ids:
                numbers, fresh[side] = ids[side].numbered(as_ids(given, side))
                places.append(numbers)
            else:
                places.append(given)
        asked = checked_shape(self.shape)
        for side, d in zip(SIDES, asked or (None, None), strict=True):
            if side in ids:
                check_count(len(ids[side]) + len(fresh[side]), side, d)
        observed = Observations(*check_entries(places[0], places[1], values, sample_weight, asked))
        if asked is None:
            self._reach(observed.rows, observed.cols, (1, 1) if reset else self.summary_.shape)
        self._ids, self._fresh = ids, fresh
        return observed

    def _take_summary(self, summary: Entries) -> None:
        asked = checked_shape(self.shape)
        if asked is not None and asked != summary.shape:
            raise ValueError(f"shape={asked} but the summary has shape {summary.shape}.")
        self._ids = {}

    def _problem(self) -> Any:
        asked = checked_shape(self.shape)
        if asked is not None and asked != self.summary_.shape:
            raise ValueError(f"shape={asked} contradicts the matrix so far, of shape {self.summary_.shape}.")
        rank, method = self._asked(None if asked is None else min(asked))
        if method is not None and not isinstance(method, Criterion):
            raise ValueError(f"selection={self.selection!r} holds observations out; use 'noise_edge' or 'ebic' here.")
        return rank, method, bool(self.offsets), asked is None

    def _family(self) -> CompletionRanks:
        return CompletionRanks(*self._solved[2:])

    def _new_rounds(self) -> SelectingRounds:
        return self._selecting(*self._solved[:2])

    def _coef_shape(self) -> tuple[int, ...]:
        if self.shape is None:
            raise ValueError("start needs the shape of the matrix; set shape=(d1, d2).")
        return self.summary_.shape

    def _publish_estimate(self) -> None:
        # The rest of the fitted attributes are computed when asked for: that takes as long as many observations.
        self.summary_ = self._rounds.summary
        self.rank_ = min(self._rounds.inner.rank, *self.summary_.shape)
        self._shown: Shown | None = None

    # -- using the model -------------------------------------------------------------------------------

    @locked
    def _show(self) -> "Shown":
        """What the rounds have found, with offsets that are zero on average."""
        check_is_fitted(self, "summary_")
        shown: Shown | None = self.__dict__.get("_shown")
        if shown is None or shown.shrink != self.shrink:
            rounds = self._rounds.inner
            u, s, vt = rounds.factors()
            coef = rounds.coef.copy()
            if self.shrink and s.any():
                s = s - np.minimum(np.divide(rounds.inflation, s, out=np.zeros_like(s), where=s > 0.0), s)
                coef = (u * s) @ vt
            weights = [self.summary_.counts.sum(axis=axis) for axis in (1, 0)]
            offsets, middle = [rounds.row_offsets, rounds.col_offsets], [0.0, 0.0]
            for k in (0, 1):
                seen = weights[k] > 0.0
                middle[k] = float(np.average(offsets[k], weights=weights[k])) if seen.any() else 0.0
                offsets[k] = np.where(seen, offsets[k] - middle[k], 0.0)
            seen = {side: w > 0.0 for side, w in zip(SIDES, weights, strict=True)}
            shown = self._shown = Shown(self.shrink, coef, (u, s, vt), sum(middle), offsets[0], offsets[1], seen)
        return shown

    @property
    def coef_(self) -> Floats:
        """The matrix without its offsets."""
        return self._show().coef

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of `coef_`; the largest entry of each column of U is positive."""
        return self._show().factors

    @property
    def offset_(self) -> float:
        """The global offset."""
        return self._show().offset

    @property
    def row_offsets_(self) -> Floats:
        """Offsets of the rows, beyond the global one."""
        return self._show().row_offsets

    @property
    def col_offsets_(self) -> Floats:
        """Offsets of the columns, beyond the global one."""
        return self._show().col_offsets

    @property
    def row_ids_(self) -> list[Any]:
        """Ids of the rows, if ids were given."""
        return self._known_ids("rows")

    @property
    def col_ids_(self) -> list[Any]:
        """Ids of the columns, if ids were given."""
        return self._known_ids("cols")

    def _sides(self) -> tuple[list[IdMap], list[int]]:
        """The ids of the sides that have any, and how many rows or columns there are."""
        known = [(self._ids[side], d) for side, d in zip(SIDES, self.summary_.shape, strict=True) if side in self._ids]
        return [ids for ids, _ in known], [d for _, d in known]

    def _known_ids(self, side: str) -> list[Any]:
        check_is_fitted(self, "summary_")
        if side not in self._ids:
            raise AttributeError(f"{side} are indices here, not ids.")
        return self._ids[side].ids

    def predict(self, rows: Any, cols: Any, data: Any = None) -> Floats:
        """Predicted values of entries.

        Rows and columns of which nothing was observed are an error; with `offsets`, a warning: the prediction is then
        the offset of the other side.

        Parameters
        ----------
        rows, cols : array-like of int or str, shape (n,), or str
            Indices, or ids if ids were learned; with `data`, the names of their columns.
        data : Arrow table, optional
            Any object with ``__arrow_c_stream__``.

        Returns
        -------
        ndarray of shape (n,)
        """
        shown = self._show()
        if data is not None:
            blocks = entry_blocks(data, EntryColumns(rows, cols))
            return np.concatenate([self._predicted(shown, block.rows, block.cols) for block in blocks])
        refuse_names(rows, cols)
        return self._predicted(shown, rows, cols)

    def _predicted(self, shown: Shown, rows: Any, cols: Any) -> Floats:
        places = [self._find(given, side, shown.seen[side]) for side, given in zip(SIDES, (rows, cols), strict=True)]
        if len(places[0]) != len(places[1]):
            raise ValueError(f"rows has {len(places[0])} entries and cols has {len(places[1])}.")
        known = [place >= 0 for place in places]
        i, j = places
        low_rank = np.where(known[0] & known[1], shown.coef[i, j], 0.0)
        result: Floats = (
            shown.offset
            + np.where(known[0], shown.row_offsets[i], 0.0)
            + np.where(known[1], shown.col_offsets[j], 0.0)
            + low_rank
        )
        return result

    def _find(self, given: Any, side: str, seen: NDArray[np.bool_]) -> Indices:
        """Indices, -1 where nothing was observed, which is an error without offsets."""
        if side in self._ids:
            ids = as_ids(given, side)
            index = self._ids[side].look_up(ids)
        else:
            index = check_indices(given, side)
            ids = index.tolist()
        inside = (index >= 0) & (index < len(seen))
        inside[inside] = seen[index[inside]]
        if not inside.all():
            first = ids[int(np.argmin(inside))]
            what = f"Nothing was observed of {int((~inside).sum())} of the {side} (first: {first!r})"
            if not self.offsets:
                raise ValueError(f"{what}; drop them, or use offsets=True to predict the offset of the other side.")
            warn_caller(f"{what}; predicting the offset of the other side.", UserWarning)
        return np.where(inside, index, -1)

    def score(self, rows: Any, cols: Any, values: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions."""
        return float(r2_score(values, self.predict(rows, cols), sample_weight=sample_weight))
