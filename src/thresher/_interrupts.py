"""Ctrl-C between blocks of rows, never inside one."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class InterruptsDeferred:
    """Hold back SIGINT, so that no block of rows is counted twice or half.

    Call `check` where the state is whole; it raises the KeyboardInterrupt that was held back. Leaving the block
    does the same. Outside the main thread, where Python delivers no signals, this does nothing.
    """

    def __enter__(self) -> Self:
        self._pending = False
        self._previous = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if handler is signal.default_int_handler:
                self._previous = handler
                signal.signal(signal.SIGINT, self._hold)
        return self

    def _hold(self, signum: int, frame: FrameType | None) -> None:
        self._pending = True

    def check(self) -> None:
        """Raise the interrupt that was held back, if any."""
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if kind is None:
            self.check()
