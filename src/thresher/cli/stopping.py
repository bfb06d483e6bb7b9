"""Ctrl-C and polite kills, noticed where it suits."""

import signal
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Take note of a signal instead of dying of it; a second one kills as usual.

    Attributes
    ----------
    signal : int
        The signal that came; zero if none did.
    """

    def __init__(self) -> None:
        self.signal = 0

    def __enter__(self) -> Self:
        # What is ignored stays ignored: a shell does that to what it starts in the background.
        self._before = {one: signal.getsignal(one) for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN}
        for one in self._before:
            signal.signal(one, self._note)
        return self

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def __exit__(self, *_: object) -> None:
        self._restore()
