"""The next item while this one is being used."""

import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# How long to wait before looking whether anybody still wants something.
PATIENCE = 0.1


class NothingYetError(Exception):
    """There will be more, but not now."""


class Prefetcher(Generic[T]):
    """The items of an iterable, in order, prepared by a thread of their own up to `depth` ahead.

    ``get`` waits only so long, so that whoever asks can attend to something else, such as Ctrl-C, while a pipe is
    silent. What the iterable raises is raised when its turn comes.

    Examples
    --------
    >>> from thresher.io.sources.prefetcher import Prefetcher
    >>> with Prefetcher(range(3)) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T], depth: int = 2) -> None:
        self._queue: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
        self._unwanted = threading.Event()
        self._thread = threading.Thread(target=self._prepare, args=(items,), daemon=True)

    def __enter__(self) -> "Prefetcher[T]":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._unwanted.set()

    def _prepare(self, items: Iterable[T]) -> None:
        try:
            for item in items:
                self._put("item", item)
                if self._unwanted.is_set():
                    return
            self._put("end", None)
        except BaseException as error:
            self._put("error", error)

    def _put(self, kind: str, content: Any) -> None:
        while not self._unwanted.is_set():
            with suppress(queue.Full):
                self._queue.put((kind, content), timeout=PATIENCE)
                return

    def get(self, timeout: float) -> T:
        """The next item. NothingYetError if there is none yet, StopIteration if there are no more."""
        try:
            kind, content = self._queue.get(timeout=timeout)
        except queue.Empty:
            raise NothingYetError from None
        if kind == "error":
            raise content
        if kind == "end":
            raise StopIteration
        item: T = content
        return item

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                yield self.get(PATIENCE)
            except NothingYetError:
                continue
            except StopIteration:
                return
