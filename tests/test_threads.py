"""Several threads on one object; and BLAS on one thread for a while, whoever asks first and whoever leaves last."""

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import threadpoolctl
from sklearn.base import clone

from thresher import OnlineHardThresholding, SparseRegressor
from thresher._utils.locks import lock_of
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


def test_eight_threads_on_one_object():
    """Every kind runs in `checks/threads.py`; here are the summary, the two estimators of rows, and two orders."""
    script = Path(__file__).parents[1] / "checks" / "threads.py"
    for kind in ("Gram", "SparseRegressor", "OnlineHardThresholding", "merging in opposite order", "fork while locked"):
        command = [sys.executable, script, "--only", kind, "--calls", "60"]
        subprocess.run(command, check=True, timeout=120)


def test_a_lock_is_neither_saved_nor_copied():
    model = SparseRegressor().partial_fit(np.eye(3), np.arange(3.0))
    by_pickle = OnlineHardThresholding(1, step_size=shrinking).partial_fit(np.eye(3), np.arange(3.0))
    for one in (model, model.summary_, by_pickle):
        with lock_of(one):
            for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
                assert "_lock" not in vars(other)
                assert lock_of(other) is not lock_of(one)
    assert "_lock" not in vars(clone(model))


def test_whoever_reads_waits_for_the_end_of_a_change():
    model, read = SparseRegressor(1).partial_fit(np.eye(3), np.arange(3.0)), []
    reader = threading.Thread(target=lambda: read.append(model.coef_))
    with lock_of(model):
        reader.start()
        reader.join(0.2)
        assert not read
        model.partial_fit(np.eye(3), 2.0 * np.arange(3.0))
    reader.join()
    np.testing.assert_array_equal(read[0], model.coef_)


@pytest.mark.parametrize(
    "read",
    [
        lambda model: model.inclusion_probabilities_,
        lambda model: model.sparsity_,
        lambda model: model.prequential_r2_,
    ],
    ids=["inclusion", "size", "prequential"],
)
def test_nobody_sees_half_of_a_change(read):
    """While a support is chosen, the list of the posterior is not there for a while."""
    rng = np.random.default_rng(0)
    model, done = SparseRegressor().partial_fit(rng.standard_normal((300, 1)), rng.standard_normal(300)), []
    other = threading.Thread(target=lambda: done.append(read(model)))
    with lock_of(model):
        listed, model._listed = model._listed, None
        other.start()
        other.join(0.1)
        model._listed = listed
        assert not done
    other.join()
    assert len(done) == 1


def rows_learned_meanwhile(model, call):
    """Let another thread learn three rows within a call, and return how many it has learned before the call ends."""
    other = threading.Thread(target=lambda: model.partial_fit(pa.table({"x": [1.0] * 3, "y": [1.0] * 3}), "y"))
    learned = []

    def meanwhile():
        if not learned:
            before = model.summary_.n_samples
            other.start()
            other.join(0.1)
            learned.append(model.summary_.n_samples - before)

    call(meanwhile)
    other.join()
    return learned


@pytest.mark.parametrize("name", ["partial_fit", "fit", "summary"])
def test_nobody_learns_between_the_parts_of_a_call(name, monkeypatch):
    rng = np.random.default_rng(0)
    batch = pa.record_batch({"x": rng.standard_normal(300), "y": rng.standard_normal(300)})
    model = SparseRegressor().partial_fit(np.array(batch["x"])[:, None], np.array(batch["y"]))
    variance = model.noise_variance

    def call(meanwhile):
        def batches():
            yield batch
            meanwhile()
            yield batch

        if name == "summary":
            monkeypatch.setattr(model, "noise_variance", lambda: (meanwhile(), variance())[1])
            model.summary()
        else:
            getattr(model, name)(pa.RecordBatchReader.from_batches(batch.schema, batches()), "y")

    assert rows_learned_meanwhile(model, call) == [0]


def test_ctrl_c_reaches_a_thread_that_waits_for_a_lock():
    """The main thread waits outside of the blocks that hold signals back."""
    code = """if True:
        import signal, threading, time
        import numpy as np
        from thresher import Gram
        from thresher._utils.locks import lock_of
        gram, held, end = Gram(2), threading.Event(), threading.Event()
        def hold():
            with lock_of(gram):
                held.set()
                time.sleep(0.3)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                end.wait()
        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        try:
            gram.absorb(np.eye(2), np.ones(2))
        except KeyboardInterrupt:
            assert gram.n_samples == 0
            print("interrupted")
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "interrupted\n"


def shrinking(t, k):
    return 0.1 / t
