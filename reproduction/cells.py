"""Cells: each is a stream of rows and the methods that see them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["oht", "os_lasso", "default", "oracle", "offline", "l1"]


@dataclass(frozen=True)
class Method:
    """A method within a cell, and the row counts after which its error is wanted.

    Parameters
    ----------
    label : str
        Unique within the cell.
    kind : {"oht", "os_lasso", "default", "oracle", "offline", "l1"}
        Algorithm 1 with a projection of size `size`; gradient descent for least squares on the support of a lasso;
        ``SparseRegressor()`` or ``LowRankRegressor()``; least squares on the true support, or over the tangent space
        of the truth; the best subset of size `size` of all rows so far; a few steps on the penalised problem, whose
        `update` says which.
    times : tuple of int
        Row counts, the rows of the batch included.
    t0 : int
        Rows of the batch.
    size, n_steps, step_size
        s, K and eta.
    update : str
        Of the kind "l1": "subgradient" or "proximal".
    measure : {"error", "cone"}
        What is recorded: the squared error, or how far outside the cone of Section 2 the estimate is.
    """

    label: str
    kind: Kind
    times: tuple[int, ...]
    t0: int = 0
    size: int = 0
    n_steps: int = 0
    step_size: float = 0.0
    update: str = ""
    measure: Literal["error", "cone"] = "error"


@dataclass(frozen=True)
class Cell:
    """A stream of a design with a seed, and methods that see the same rows. The unit that is saved.

    Parameters
    ----------
    name : str
        Which experiment of which design it belongs to.
    design : mapping
        Parameters of the stream; `matrix` says which kind of stream.
    seed : int
        Counted from zero. The rows depend on the design and this number alone, so a cell can be run again by itself,
        and cells with equal designs see the same rows.
    methods : tuple of Method
    """

    name: str
    design: Mapping[str, Any] = field(hash=False)
    seed: int
    methods: tuple[Method, ...]

    @property
    def key(self) -> str:
        """A name that no other cell has."""
        only = " default" if all(method.kind == "default" for method in self.methods) else ""
        return f"{self.name} seed={self.seed}{only}"

    @property
    def digest(self) -> str:
        """A hash of all settings: results with another digest belong to other settings."""
        text = repr((self.name, sorted(self.design.items()), self.seed, self.methods))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def data_seed(self) -> int:
        """The seed of its rows."""
        text = repr((sorted(self.design.items()), self.seed))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    @property
    def n_rows(self) -> int:
        """How many rows it needs."""
        return max(time for method in self.methods for time in method.times)


def without_default(cell: Cell) -> list[Cell]:
    """The cell without the default of this package, and another one with it: that method changes most often."""
    others = tuple(method for method in cell.methods if method.kind != "default")
    default = tuple(method for method in cell.methods if method.kind == "default")
    return [replace(cell, methods=methods) for methods in (others, default) if methods]
