"""How far a comparison has come."""

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """A bar on a terminal if rich is installed, else a line for each run on the standard error.

    Parameters
    ----------
    n_done, n_runs : int
    wanted : bool or None
        None shows something on terminals only.
    """

    def __init__(self, n_done: int, n_runs: int, wanted: bool | None) -> None:
        terminal = sys.stderr.isatty()
        self._n_done, self._n_runs = n_done, n_runs
        self._bar: Any = None
        self._lines = terminal if wanted is None else wanted
        if self._lines and terminal:
            self._bar = _rich_bar()
            self._lines = self._bar is None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("comparing", total=self._n_runs, completed=self._n_done)
        return self

    def advance(self, what: str) -> None:
        """One more run is done."""
        self._n_done += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=what)
        elif self._lines:
            print(f"{self._n_done} of {self._n_runs}: {what}", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _rich_bar() -> Any:
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    return progress.Progress(
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
    )
