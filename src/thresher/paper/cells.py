"""What is computed: cells, each a stream of rows and the methods that see them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["oht", "os_lasso", "default", "oracle"]


@dataclass(frozen=True)
class Method:
    """A method within a cell, and the row counts after which its error is wanted.

    Parameters
    ----------
    label : str
        Unique within the cell.
    kind : {"oht", "os_lasso", "default", "oracle"}
        Algorithm 1 with a projection of size `size`; least squares by gradient descent on the support of a
        lasso; what this package does by default; least squares on the true support, or over the
        tangent space of the truth.
    times : tuple of int
        Rows seen, the batch among them.
    t0 : int
        Rows of the batch.
    size, n_steps, step_size
        s, K and eta.
    """

    label: str
    kind: Kind
    times: tuple[int, ...]
    t0: int = 0
    size: int = 0
    n_steps: int = 0
    step_size: float = 0.0


@dataclass(frozen=True)
class Cell:
    """A stream of a design with a seed, and methods that see the same rows. The unit of keeping.

    Parameters
    ----------
    name : str
        Which experiment of which design it belongs to.
    design : mapping
        Parameters of the stream, by the name of the paper's setting; `matrix` says which kind of stream.
    seed : int
        Counted from zero. The rows follow from the design and this number alone, so that a cell can be run again by
        itself, and cells with equal designs see the same rows.
    methods : tuple of Method
    """

    name: str
    design: Mapping[str, Any] = field(hash=False)
    seed: int
    methods: tuple[Method, ...]

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.name} seed={self.seed}"

    @property
    def digest(self) -> str:
        """What it computes: results of another digest are of other settings."""
        text = repr((self.name, sorted(self.design.items()), self.seed, self.methods))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def data_seed(self) -> int:
        """The seed of its rows."""
        text = repr((sorted(self.design.items()), self.seed))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    @property
    def n_rows(self) -> int:
        """Rows it takes."""
        return max(time for method in self.methods for time in method.times)
