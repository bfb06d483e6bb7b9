"""Ctrl-C between blocks of rows, never inside one."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class InterruptsDeferred:
    """Hold back SIGINT, so that no block of rows is counted twice or half.

    Call `check` where the state is whole: it lets the handler that was in place see a signal that was held
    back, and the usual one raises KeyboardInterrupt. Leaving the block does the same. Within another such block, the
    outer one does the holding. Outside the main thread, where Python delivers no signals, this does nothing.
    """

    def __enter__(self) -> Self:
        self._held: tuple[int, FrameType | None] | None = None
        self._handler = None
        self._outer: InterruptsDeferred | None = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            holder = getattr(handler, "__self__", None)
            if isinstance(holder, InterruptsDeferred):
                self._outer = holder
            elif callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._hold)
        return self

    def _hold(self, signum: int, frame: FrameType | None) -> None:
        self._held = signum, frame

    def check(self) -> None:
        """Deliver the signal that was held back, if any."""
        if self._outer is not None:
            self._outer.check()
        elif self._held is not None and self._handler is not None:
            held, self._held = self._held, None
            self._handler(*held)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if kind is None:
            self.check()
