"""What selection needs to know of a kind of model to choose among its members by size."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from thresher._utils.arrays import Floats
from thresher.selection.criteria import Criterion
from thresher.solvers.path import Path


class Family(ABC):
    """A kind of model with a size."""

    #: The criterion that chooses while there is nothing to hold out.
    fallback: ClassVar[Criterion]

    @abstractmethod
    def path(self, summary: Any, n_most: int | None = None, criterion: Criterion | None = None) -> Path:
        """Candidates of all sizes worth considering by the criterion; of sizes up to `n_most`, if given."""

    @abstractmethod
    def loss_elsewhere(self, path: Any, summary: Any) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""


class RoundsSource(ABC):
    """What makes rounds of a size."""

    #: Whether an estimate is small enough to be remembered at every choice.
    memorable: ClassVar[bool] = True

    @abstractmethod
    def new_rounds(self, summary: Any, size: int) -> Any:
        """Rounds at a size."""

    @abstractmethod
    def fits(self, rounds: Any, size: int) -> bool:
        """Whether rounds may be those that `new_rounds` makes at a size: nothing that was saved is trusted."""


class RoundsFamily(Family, RoundsSource):
    """A kind of model that online rounds estimate."""

    @abstractmethod
    def largest(self, summary: Any) -> int:
        """The largest size that there is."""

    @abstractmethod
    def size_of(self, coef: Floats) -> int:
        """The size of an estimate."""

    def start(self, rounds: Any, path: Path, size: int) -> None:
        """Let rounds that were given a new path go on from a candidate, where that is better than where they are."""
