"""Ctrl-C between blocks of rows, never inside one."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

# The functions of the interpreter, where there are any behind those of the module, which turn every handler into an
# enumeration and back: for a single row, that would take longer than most of what is done with it.
_signals: Any = sys.modules.get("_signal", signal)
_SIGINT = int(signal.SIGINT)


class InterruptsDeferred:
    """Hold back SIGINT, so that no block of rows is counted twice or half.

    Call `check` where the state is whole: it lets the handler that was in place see a signal that was held
    back, and the usual one raises KeyboardInterrupt. Leaving the block does the same. Within another such block, the
    outer one does the holding. Outside the main thread, where Python delivers no signals, this does nothing.

    Parameters
    ----------
    whole : bool, default=False
        Whether the block is one piece: checks inside it, also those of blocks within, wait for its end.
    """

    # The outermost block of the main thread, if there is one.
    _outermost: ClassVar["InterruptsDeferred | None"] = None

    def __init__(self, whole: bool = False) -> None:
        self._whole = whole
        self._n_whole = 0  # blocks in one piece that have begun and not ended

    def __enter__(self) -> Self:
        self._held: tuple[int, FrameType | None] | None = None
        self._handler = None
        self._outer: InterruptsDeferred | None = None
        if threading.current_thread() is threading.main_thread():
            self._outer = InterruptsDeferred._outermost
            handler = _signals.getsignal(_SIGINT) if self._outer is None else None
            if callable(handler):
                self._handler = handler
                _signals.signal(_SIGINT, self._hold)
                InterruptsDeferred._outermost = self
        self._holder._n_whole += self._whole
        return self

    @property
    def _holder(self) -> "InterruptsDeferred":
        return self if self._outer is None else self._outer

    def _hold(self, signum: int, frame: FrameType | None) -> None:
        self._held = signum, frame

    def check(self) -> None:
        """Deliver the signal that was held back, if any."""
        holder = self._holder
        if holder._held is not None and holder._handler is not None and not holder._n_whole:
            held, holder._held = holder._held, None
            holder._handler(*held)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._holder._n_whole -= self._whole
        if self._handler is not None:
            InterruptsDeferred._outermost = None
            _signals.signal(_SIGINT, self._handler)
        if kind is None:
            self.check()
