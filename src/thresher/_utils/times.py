"""Times of rows and durations, from what users have, in seconds."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.checks import as_real, check_finite

# Durations and times, in seconds or rows, between which floats tell a difference.
SHORTEST, LONGEST = 1e-9, 1e15
# Units of NumPy, but for those that are no fixed number of seconds: years, months and none.
SECONDS: dict[str, int | Fraction] = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
SECONDS |= {unit: Fraction(1, 1000**k) for k, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), 1)}


def is_timedelta(value: Any) -> bool:
    """Whether a duration can only be one of time."""
    return isinstance(value, timedelta | np.timedelta64)


def as_duration(value: Any, name: str) -> float:
    """A positive number of seconds or rows, from a number or a timedelta of Python, NumPy or pandas."""
    if is_timedelta(value):
        seconds = _seconds_of(value)
        if seconds is None:
            raise ValueError(f"{name} must be a number of weeks, days, hours, ... if it is a timedelta, got {value!r}")
        number = float(seconds)
    elif isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
    else:
        raise ValueError(f"{name} must be a number of rows, or of seconds, or a timedelta, got {value!r}")
    if not SHORTEST <= number <= LONGEST:
        raise ValueError(f"{name} must be positive, between {SHORTEST:g} and {LONGEST:g}, got {value!r}")
    return number


def as_microseconds(value: Any) -> int:
    """A timedelta as a whole number of microseconds, which is what Python's are; TypeError if it is none."""
    seconds, tick = _seconds_of(value), timedelta(microseconds=1)
    number = None if seconds is None else 10**6 * seconds
    if number is None or number.denominator != 1 or not timedelta.min // tick <= number <= timedelta.max // tick:
        raise TypeError(f"{value!r} cannot be saved: files keep durations in whole microseconds; round it.")
    return int(number)


def _seconds_of(value: Any) -> Fraction | None:
    """Exactly; None if the timedelta is none, or has a unit such as months."""
    if hasattr(value, "to_timedelta64"):  # of pandas, with nanoseconds
        value = value.to_timedelta64()
    if not isinstance(value, np.timedelta64):
        return Fraction(value // timedelta(microseconds=1), 10**6)
    unit, step = np.datetime_data(value.dtype)
    if unit not in SECONDS or np.isnat(value):
        return None
    return int(value.astype(np.int64)) * step * Fraction(SECONDS[unit])


def as_seconds(times: Any, n_rows: int) -> Floats:
    """A time for each row, in seconds: from numbers of seconds, or dates and times. They must not go back."""
    array = np.asarray(times)
    if array.dtype.kind == "O" and array.size:
        values = [_as_moment(value, row) for row, value in enumerate(array.ravel())]
        if len({isinstance(value, float) for value in values}) > 1:
            raise ValueError("times has both numbers and dates; give seconds in all rows, or dates and times in all.")
        array = np.array(values).reshape(array.shape)
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise ValueError(f"times contains NaT (first at row {int(np.argmax(np.isnat(array)))}); drop such rows.")
        array = (array - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    seconds = np.asarray(as_real(array, "times"), np.float64)
    if seconds.ndim == 0:
        seconds = np.full(n_rows, float(seconds))
    if seconds.shape != (n_rows,):
        raise ValueError(f"times has shape {seconds.shape}; expected ({n_rows},).")
    seconds = np.ascontiguousarray(seconds)
    check_finite(seconds, "times")
    if np.abs(seconds).max() > LONGEST:
        raise ValueError(f"times holds values up to {np.abs(seconds).max():g}; give seconds, or dates and times.")
    back = seconds[1:] < seconds[:-1]
    if back.any():
        first = int(np.argmax(back)) + 1
        raise ValueError(
            f"times goes back at row {first}, from {seconds[first - 1]:.15g} to {seconds[first]:.15g}; sort the rows "
            "by time."
        )
    return seconds


def _as_moment(value: Any, row: int) -> "float | np.datetime64[Any]":
    """A number of seconds, or a date and time in UTC, from an object; those without a time zone are taken as UTC."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_ | np.timedelta64):
            return float(value)
        moment = value
        if isinstance(value, str):
            with suppress(ValueError):  # what only NumPy can read has no time zone
                aware = datetime.fromisoformat(value)
                moment = value if aware.tzinfo is None else aware
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        if isinstance(moment, date | str | np.datetime64):
            # pandas has nanoseconds, which a datetime of Python has not.
            return moment.to_datetime64() if hasattr(moment, "to_datetime64") else np.datetime64(moment)
    raise ValueError(
        f"times has {value!r} in row {row}, which is no time; give numbers of seconds, or dates and times."
    )


def next_times(times: Any, n_rows: int, timed: bool | None, last: float | None) -> Floats | None:
    """Times of the next rows in seconds, or None if rows are counted.

    `timed` says which it was so far, None that both are possible; `last` is the time of the last row, if there was one.
    """
    if times is None:
        if timed:
            raise ValueError("Ages are in seconds, by a duration or by the times of earlier rows; give times=.")
        return None
    if timed is False:
        raise ValueError("Earlier rows had no times, so rows are counted; give times from the first row on, or never.")
    seconds = as_seconds(times, n_rows)
    if last is not None and seconds[0] < last:
        raise ValueError(
            f"times goes back, from {last:.15g} in an earlier call to {seconds[0]:.15g}; rows must come in the order "
            "of their times. Sort them, or leave out late ones."
        )
    return seconds
