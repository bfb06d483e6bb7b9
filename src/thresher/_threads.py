"""How many threads BLAS may use."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = threading.Lock()
_inside = 0
_limit = ExitStack()


@cache
def _controller() -> Any:
    return ThreadpoolController()


def _nothing(force: bool) -> None:
    """Where there is nobody to tell."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, for many calls on small matrices: waking a second one takes longer than they do.

    The limit holds for the whole process, so the first thread to come sets it and the last to leave lifts it.
    """
    global _inside
    with _lock:
        if _inside == 0:
            _limit.enter_context(_controller().limit(limits=1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                # Some versions of threadpoolctl listen only to the thread that set a limit, unless told otherwise.
                getattr(OpenBLASController, "clear_controlling_thread", _nothing)(force=True)
                _limit.close()
