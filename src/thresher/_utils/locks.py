"""One thread at a time on one object.

Calls that change an object hold its lock, and so do calls that read more than one thing of it. Locks are re-entrant,
made when they are first needed, and neither saved nor copied. Whoever holds the lock of an estimator may take that of
its summary, never the other way round, and nobody holds the locks of two summaries: so nobody waits in a circle.
"""

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
Object = TypeVar("Object")
Result = TypeVar("Result")

# Where an object keeps its lock, among its attributes.
LOCK = "_lock"
_locks: "weakref.WeakSet[Any]" = weakref.WeakSet()


def lock_of(value: Any) -> Any:
    """The lock of an object, to be used in a ``with`` statement."""
    return value.__dict__.get(LOCK) or _new_lock(value)


def _new_lock(value: Any) -> Any:
    lock = value.__dict__.setdefault(LOCK, threading.RLock())  # of two threads, one comes first
    _locks.add(lock)
    return lock


def _release_all() -> None:
    """In a child that was forked, threads that held a lock are not there to let it go."""
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)


def locked(method: Callable[Concatenate[Object, P], Result]) -> Callable[Concatenate[Object, P], Result]:
    """A method that holds the lock of its object."""

    @wraps(method)
    def holding(self: Object, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with lock_of(self):
            return method(self, *args, **kwargs)

    return holding
