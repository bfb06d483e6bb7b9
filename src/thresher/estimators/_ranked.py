"""What estimators of a matrix have in common about the rank: given, or chosen from the summary."""

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats
from thresher._utils.locks import locked
from thresher.estimators._base import Estimator
from thresher.estimators._candidates import Candidates
from thresher.estimators._online import OnlineEstimator
from thresher.selection.criteria import Criterion, Method
from thresher.selection.cross_validation import CrossValidation
from thresher.selection.ebic import Ebic
from thresher.selection.family import Family, RoundsFamily
from thresher.selection.noise_edge import NoiseEdge
from thresher.selection.selecting import SelectingRounds
from thresher.solvers.rank_path import RankPath

# How to choose a rank, by name.
METHODS: dict[str, Method] = {"noise_edge": NoiseEdge(), "ebic": Ebic(), "cv": CrossValidation()}


class Ranked(Estimator):
    """An estimator of a matrix whose rank is a number, or "auto".

    A subclass says among which matrices (`_family`).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "selection": [StrOptions(set(METHODS)), Method],
    }
    rank: int | str
    selection: str | Method
    summary_: Any

    @abstractmethod
    def _family(self) -> Family:
        """The matrices to choose from, by rank."""

    def _method(self) -> Method:
        return METHODS[self.selection] if isinstance(self.selection, str) else self.selection

    def _asked(self, side: int | None) -> tuple[int | None, Method | None]:
        """The rank, or how to choose it; an error if it exceeds the smaller side of the matrix."""
        if isinstance(self.rank, str):
            return None, self._method()
        if side is not None and self.rank > side:
            raise ValueError(f"rank={self.rank} exceeds the smaller side of the matrix; use at most {side}.")
        return int(self.rank), None

    @locked
    def path(self) -> Candidates:
        """Estimates of every rank, from the summary alone: neither the current estimate nor the stream has a say.

        Returns
        -------
        Candidates
            The loss, the criterion of `selection` (that of ``"noise_edge"``, if it needs more than the summary) and the
            coefficients of every rank worth considering.
        """
        check_is_fitted(self, "summary_")
        if self.summary_.weight == 0.0:
            raise ValueError("The summary is empty: absorb data with positive weight first.")
        path = self._family().path(self.summary_)
        assert isinstance(path, RankPath)
        method = self._method()
        criterion = (method if isinstance(method, Criterion) else NoiseEdge()).criterion(path)
        return self._show_path(path, criterion)

    def _show_path(self, path: RankPath, criterion: Floats) -> Candidates:
        return Candidates(path.sizes, path.loss, criterion, [path.coef(rank) for rank in path.sizes])


class RankedRounds(Ranked, OnlineEstimator):
    """An online estimator of a matrix of given or chosen rank."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineEstimator._parameter_constraints,
        **Ranked._parameter_constraints,
    }

    @abstractmethod
    def _family(self) -> RoundsFamily:
        """The matrices to choose from, by rank."""

    def _selecting(self, size: int | None, method: Method | None) -> SelectingRounds:
        """Rounds at this rank, or at one that the method chooses."""
        # A path costs as much as many rounds, so it is made when there is one more sample for every four.
        return SelectingRounds(self.summary_, self._family(), size or 1, method, self.n_warmup, parts=4)
