"""What a choice of size looks like, and what every way of choosing has in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.tolerances import PERFECT
from thresher.io.schema import Array, Count, Schema, Text
from thresher.online.samples import Samples
from thresher.solvers.path import Path

if TYPE_CHECKING:
    from thresher.selection.family import Family


# Criteria this close, relatively, count as equal, and the smaller model is chosen.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Selection:
    """A choice among sizes, and why.

    Attributes
    ----------
    method : str
        "ebic", "noise_edge" or "cv".
    sizes : ndarray of int
        The sizes compared.
    criterion : ndarray
        What was minimised, for each size: the information criterion, or an estimate of the mean squared error.
    standard_error : ndarray or None
        Standard error of the criterion, where it is an average.
    chosen : int
        The size chosen.
    n_samples : int
        Rows seen when it was chosen.
    """

    _schema = Schema(
        lambda choice: choice.chosen in choice.sizes,
        method=Text(),
        sizes=Array("sizes", dtype="i8", least=0, ascending=True, shared=True),
        criterion=Array("sizes", least=-np.inf, most=np.inf, shared=True),
        standard_error=Array("sizes", least=-np.inf, most=np.inf, nan=True) | None,
        chosen=Count(),
        n_samples=Count(),
    )
    method: str
    sizes: NDArray[np.intp]
    criterion: Floats
    standard_error: Floats | None
    chosen: int
    n_samples: int

    @property
    def value(self) -> float:
        """The criterion of the size chosen."""
        return float(self.criterion[np.searchsorted(self.sizes, self.chosen)])

    def __repr__(self) -> str:
        return (
            f"Selection(chosen={self.chosen} of {self.sizes[0]}..{self.sizes[-1]}, method={self.method!r}, "
            f"criterion={self.value:.6g}, n_samples={self.n_samples})"
        )


def smallest_minimiser(sizes: NDArray[np.intp], criterion: Floats, allowance: float = 0.0) -> int:
    """The smallest size whose criterion is within `allowance` of the least."""
    least = float(np.min(criterion))
    return int(sizes[np.argmax(criterion <= least + allowance + TIE * abs(least))])


class Chooser(ABC):
    """Chooses a size, again and again, while a stream goes on."""

    #: Whether it must see the samples themselves.
    needs_rows: ClassVar[bool] = False

    def fits(self, summary: Any) -> bool:
        """Whether this may be a chooser for a stream that the summary has seen: nothing that was saved is trusted."""
        return True

    def check(self, summary: Any) -> None:  # noqa: B027 - most choosers need nothing but the summary
        """Raise if the choice cannot be made for a stream that this summary has seen the beginning of."""

    def absorb(self, summary: Any, samples: Samples) -> None:  # noqa: B027 - most choosers look at the summary alone
        """See the samples that the summary has just absorbed."""

    def force(self) -> None:  # noqa: B027 - most choosers choose whenever they are asked
        """Choose at the next occasion, even if little came in since the last."""

    def widened(self, n_features: int) -> "Chooser":
        """The chooser to go on with when columns of zeros were appended; most choosers have nothing that wide."""
        return self

    @abstractmethod
    def choose(self, family: "Family", summary: Any) -> tuple[Path, Selection] | None:
        """A path on the summary and the choice; None if the last choice stands."""


class Method(ABC):
    """How to choose a size: a description that many estimators may share."""

    @abstractmethod
    def chooser(self, n_warmup: int) -> Chooser:
        """A new chooser, for a stream whose rounds begin after `n_warmup` samples."""


class Criterion(Method, Chooser):
    """Minimise n log(RSS / n) + penalty, over a new path on the summary whenever it is asked to choose.

    A subclass has a `name` and says what candidates cost (`penalty`), linear in their numbers of parameters; that is
    all that a criterion of your own needs.
    """

    name: ClassVar[str]

    @abstractmethod
    def penalty(self, weight: float, freedom: Floats, log_models: Floats) -> Floats:
        """What candidates cost, by their numbers of parameters and the logarithms of the numbers of models."""

    def criterion(self, path: Any) -> Floats:
        """The criterion of every candidate."""
        return misfit(path) + self.penalty(path.weight, path.freedom, path.log_models)

    def select(self, path: Path, n_samples: int) -> Selection:
        """The choice on a path: the smallest size whose criterion is least."""
        criterion = self.criterion(path)
        return Selection(self.name, path.sizes, criterion, None, smallest_minimiser(path.sizes, criterion), n_samples)

    def chooser(self, n_warmup: int) -> Chooser:
        """Itself: it keeps nothing from one choice to the next."""
        return self

    def choose(self, family: "Family", summary: Any) -> tuple[Path, Selection]:
        """The choice on a new path."""
        path = family.path(summary, criterion=self)
        return path, self.select(path, summary.n_samples)


def misfit(path: Path) -> Floats:
    """Weight times log of the mean squared residual of every candidate."""
    least = max(2.0 * PERFECT * path.null, np.finfo(np.float64).tiny)
    result: Floats = path.weight * np.log(np.maximum(2.0 * path.loss, least))
    return result
