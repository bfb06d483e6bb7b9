"""How far reading has come: a line that stays in place on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any, Self

from thresher._utils.run_progress import duration
from thresher.io.sources.source import Source

# Seconds between lines where they are not overwritten, and before the first.
BETWEEN, BEFORE = 10.0, 2.0


class Live:
    """Rows done, rows per second, rows left, and whatever else there is to say.

    Parameters
    ----------
    source : Source
    n_before : int
        Rows that were read before, and are read again first.
    wanted : bool
    """

    def __init__(self, source: Source, n_before: int, wanted: bool) -> None:
        self._source, self._n_before = source, n_before
        self._start = self._shown = time.monotonic()
        self._shown += BEFORE - BETWEEN
        self._display: Any = None
        self._wanted = wanted
        if wanted and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live as RichLive

            self._display = RichLive(
                _one_line("reading ..."), console=Console(stderr=True), refresh_per_second=4, transient=True
            )

    def __enter__(self) -> Self:
        if self._display is not None:
            self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display.stop()

    def say(self, what: str) -> None:
        """What is going on besides reading."""
        if self._display is not None:
            self._display.update(_one_line(what))

    def show(self, n_rows: int, *more: str, n_again: int = 0) -> None:
        """So many rows were read, `n_again` of those that had been read before."""
        if not self._wanted:
            return
        now = time.monotonic()
        if n_rows == self._n_before:  # nothing new yet
            self._start = now
            if self._n_before:
                self.say(f"reading again what was read before: {n_again:,} of {self._n_before:,} rows")
            return
        if self._display is None:
            if now - self._shown < BETWEEN:
                return
            print(self._line(n_rows, now, more), file=sys.stderr, flush=True)
        else:
            self._display.update(_one_line(self._line(n_rows, now, more)))
        self._shown = now

    def _line(self, done: int, now: float, more: tuple[str, ...]) -> str:
        speed = (done - self._n_before) / max(now - self._start, 1e-9)
        total, about = self._source.n_rows, ""
        fraction = self._source.fraction
        if total is None and fraction:
            total, about = max(round(done / fraction), done), "about "
        parts = [f"{done:,} rows", f"{speed:,.0f} rows/s"]
        if total is not None and total > done:
            parts.append(f"{about}{total - done:,} left, {duration((total - done) / max(speed, 1e-9))}")
        return "   ".join([*parts, *more])


def _one_line(text: str) -> Any:
    """A narrow terminal shows the beginning; two lines would jump."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")
