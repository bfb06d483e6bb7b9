"""What estimators share whose rows may count less as they age, or leave."""

from datetime import timedelta
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from thresher._utils.times import as_duration
from thresher.selection.criteria import Method
from thresher.selection.cross_validation import CrossValidation


class WithMemory:
    """An estimator with a `half_life` or a `window`, of which its summary takes care."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        # NumPy's durations come first: they pass for integers, but do not compare with numbers.
        "half_life": [np.timedelta64, Interval(Real, 0, None, closed="neither"), timedelta, None],
        "window": [np.timedelta64, Interval(Real, 0, None, closed="neither"), timedelta, None],
        "exact_window": ["boolean"],
    }
    half_life: float | timedelta | None
    window: float | timedelta | None
    exact_window: bool

    def _memory(self) -> dict[str, Any]:
        """How a summary is to forget."""
        return {"half_life": self.half_life, "window": self.window, "exact_window": bool(self.exact_window)}

    def _asked_memory(self) -> tuple[float | None, float | None, bool]:
        half_life, window = self.half_life, self.window
        return (
            None if half_life is None else as_duration(half_life, "half_life"),
            None if window is None else as_duration(window, "window"),
            bool(self.exact_window) and window is not None,
        )

    def _own(self, summary: Any) -> Any:
        """A copy to go on from: one that forgets as the model does, or as it stands if the model does not."""
        asked = self._asked_memory()
        if (summary.half_life, summary.window, summary.exact_window) == asked:
            return summary.copy()
        if any(asked):
            raise ValueError(
                f"The model has half_life={self.half_life!r} and window={self.window!r}, the summary "
                f"half_life={summary.half_life!r} and window={summary.window!r}; they must be the same."
            )
        return summary.plain()

    def _check_memory(self, summary: Any, method: Method | None) -> None:
        """Raise if parameters ask for another memory than the summary has, or for what cannot forget."""
        asked = self._asked_memory()
        if asked != (summary.half_life, summary.window, summary.exact_window):
            raise ValueError(
                "half_life and window cannot change while rows come in, since what was forgotten is gone; call fit, or "
                "begin a new model."
            )
        if any(asked) and isinstance(method, CrossValidation):
            raise ValueError(
                "Cross-validation counts all its rows equally; choose another selection with half_life or window."
            )
