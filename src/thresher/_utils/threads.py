"""How many threads BLAS may use."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

# Products of matrices of up to so many columns are too short for a second thread of BLAS.
FEW_COLUMNS = 400

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


def blas_threads_for(n_columns: int) -> AbstractContextManager[None]:
    """As many threads as work on matrices of so many columns is worth: one for few, and otherwise what there are."""
    return one_blas_thread() if n_columns <= FEW_COLUMNS else nullcontext()
