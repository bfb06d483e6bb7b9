"""BLAS on one thread for a while, whoever asks for it first and whoever leaves last."""

import threading

import threadpoolctl

from thresher._utils.threads import one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]


def test_the_last_to_leave_lifts_the_limit():
    """Also if that is not the thread that set it, and that one is still alive."""
    entered, leave, left, end = (threading.Event() for _ in range(4))

    def first():
        with one_blas_thread():
            entered.set()
            leave.wait()
        left.set()
        end.wait()

    before = blas_threads()
    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        leave.set()
        left.wait()
        assert set(blas_threads()) == {1}
    after = blas_threads()
    end.set()
    thread.join()
    assert after == before
