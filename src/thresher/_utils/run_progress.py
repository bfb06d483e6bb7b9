"""How far a long run has come."""

import sys
import time
from types import TracebackType
from typing import Any, Self


class Progress:
    """A bar on a terminal if rich is installed, else a line for each run on the standard error, with the time left.

    Parameters
    ----------
    n_done, n_runs : int
    wanted : bool or None
        None shows something on terminals only.
    done, total : float, optional
        The same in units of work, where runs differ in length.
    pace : float, optional
        Seconds per unit of work, as far as is known before the first run is done.
    """

    def __init__(
        self,
        n_done: int,
        n_runs: int,
        wanted: bool | None,
        done: float | None = None,
        total: float | None = None,
        pace: float | None = None,
    ) -> None:
        terminal = sys.stderr.isatty()
        self._n_done, self._n_runs = n_done, n_runs
        self._done = float(n_done if done is None else done)
        self._total = float(n_runs if total is None else total)
        self._first, self._start, self._pace = self._done, time.monotonic(), pace
        self._bar: Any = None
        self._lines = terminal if wanted is None else wanted
        if self._lines and terminal:
            self._bar = _rich_bar()
            self._lines = self._bar is None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(
                "starting", total=self._total, completed=self._done, runs=self._runs, left=self._left()
            )
        elif self._lines and self._pace is not None and self._done < self._total:
            print(f"{self._runs}{self._left()}", file=sys.stderr, flush=True)
        return self

    def advance(self, what: str, work: float = 1.0, n_runs: int = 1) -> None:
        """One more run is done, or several."""
        self._n_done += n_runs
        self._done += work
        if self._bar is not None:
            self._bar.update(self._task, advance=work, description=what, runs=self._runs, left=self._left())
        elif self._lines:
            print(f"{self._runs}{self._left()}: {what}", file=sys.stderr, flush=True)

    @property
    def _runs(self) -> str:
        return f"{self._n_done} of {self._n_runs}"

    def _left(self) -> str:
        """How long the rest takes at the pace so far."""
        if self._done > self._first:
            self._pace = (time.monotonic() - self._start) / (self._done - self._first)
        if self._pace is None or self._done >= self._total:
            return ""
        return f", about {duration(self._pace * (self._total - self._done))} left"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def duration(seconds: float) -> str:
    """To two digits or so."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _rich_bar() -> Any:
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    return progress.Progress(
        progress.SpinnerColumn(),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[runs]}{task.fields[left]}"),
        progress.TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
    )
