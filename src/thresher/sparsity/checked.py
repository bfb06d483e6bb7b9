"""A set from elsewhere: what its projection returns is checked before it is used."""

from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher.io.schema import Anything, Schema, Text

# A measure may exceed the size of the set by this share: rounding, where it is not a count.
ROUNDING = 1e-9


class ProjectionError(ValueError):
    """A projection returned something that is not a point of its set."""


class CheckedSet:
    """A user's set, with a projection whose results have the right shape, are finite and lie in the set.

    Parameters
    ----------
    own : object
        Has ``project(theta)``. It may also have ``measure(theta)``, the generalised sparsity of theta, together with
        the size of the set, `s`: then every projection must measure at most s. And ``restrict(direction, theta)``: the
        part of a direction along which theta can move within the set. Without it, that is the whole direction.
    """

    _schema = Schema(
        lambda checked: callable(getattr(checked.own, "project", None)) and checked.name == type(checked.own).__name__,
        own=Anything(),
        name=Text(),
    )

    def __init__(self, own: Any) -> None:
        self.own = own
        self.name = type(own).__name__
        if hasattr(own, "measure") and not hasattr(own, "s"):
            raise ValueError(
                f"{self.name} has measure(theta) but no attribute s to compare it with; add one, or leave out measure."
            )

    def project(self, theta: Floats) -> Floats:
        """What the set's own projection returns, as a new array."""
        point = self._array(self.own.project(theta.copy()), theta.shape, "project")
        if hasattr(self.own, "measure"):
            size, most = float(self.own.measure(point.copy())), float(self.own.s)
            if not size <= most + ROUNDING * abs(most):
                raise ProjectionError(
                    f"{self.name}.project returned a point outside its set: it measures {size:g}, above s = {most:g}."
                )
        return point

    def restrict(self, direction: Floats, theta: Floats) -> Floats:
        """The part of a direction along which theta can move within the set; all of it if the set does not say."""
        if not hasattr(self.own, "restrict"):
            return direction
        return self._array(self.own.restrict(direction.copy(), theta.copy()), theta.shape, "restrict")

    def _array(self, returned: Any, shape: tuple[int, ...], method: str) -> Floats:
        try:
            if np.iscomplexobj(returned):
                raise TypeError("complex numbers")
            array = np.array(returned, np.float64)
        except (TypeError, ValueError) as error:
            raise ProjectionError(
                f"{self.name}.{method} returned a {type(returned).__name__}; it must return an array of real numbers."
            ) from error
        if array.shape != shape:
            raise ProjectionError(
                f"{self.name}.{method} returned an array of shape {array.shape} for one of shape {shape}; they must be "
                "equal."
            )
        if not np.isfinite(array).all():
            raise ProjectionError(f"{self.name}.{method} returned entries that are not finite; return numbers.")
        return array
