"""Comparisons: every column recomputed, and the same records in one process and in several."""

import gc
import pickle
import re
import signal
import sys
import warnings
import weakref
from functools import partial
from itertools import pairwise
from typing import ClassVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.baselines import Comparison, DualAveraging, FailedRunsError, compare
from thresher.baselines._comparison import METRICS, Record
from thresher.io.sources.synthetic import SparseLinearStream

mpl.use("Agg")

TOEPLITZ = partial(SparseLinearStream, n_features=30, n_active=4, correlation=0.4, signal=0.8)
TWO = {
    "hard": OnlineHardThresholding(6, n_steps=2, n_warmup=50),
    "RDA": DualAveraging(0.1, gamma=9.0, rho=0.02),
}
run = partial(compare, n_jobs=1, n_test=70)


def without_costs(found):
    return [record._replace(seconds=0.0, bytes=0) for record in found]


class Fake(BaseEstimator):
    """An estimator whose coefficients count rows, and that does something odd when it has seen enough."""

    def __init__(self, at=100, what="raise"):
        self.at = at
        self.what = what

    def partial_fit(self, X, y):
        self.rows_ = getattr(self, "rows_", 0) + len(y)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[0] = self.rows_
        if self.rows_ >= self.at:
            if self.what == "raise":
                raise ZeroDivisionError("enough")
            if self.what == "interrupt":
                signal.raise_signal(signal.SIGINT)
            if self.what == "warn":
                warnings.warn(f"{self.rows_} rows are enough", ConvergenceWarning, stacklevel=1)
            if self.what == "nan":
                self.coef_[0] = np.nan
            if self.what == "zero":
                self.coef_[0] = 0.0
            if self.what == "says so":
                self.diverged_ = True
        return self

    def predict(self, X):
        return X @ self.coef_


def test_every_column_is_what_it_says(tmp_path):
    found = run(TWO, TOEPLITZ, [60, 300, 530], [3, 8])
    assert [(r.method, r.seed, r.t) for r in found] == [
        (name, seed, t) for name in TWO for seed in (3, 8) for t in (60, 300, 530)
    ]
    records = iter(found)
    for name in TWO:
        for seed in (3, 8):
            stream = TOEPLITZ(seed=seed)
            truth = stream.coef
            X_test, y_test = stream.draw(70)
            X, y = stream.draw(530)
            model = type(TWO[name])(**TWO[name].get_params())
            seconds = 0.0
            for a, b in pairwise([0, 60, 256, 300, 512, 530]):  # blocks of 256, cut at the checkpoints
                model.partial_fit(X[a:b], y[a:b])
                if b in (60, 300, 530):
                    record = next(records)
                    chosen, right = set(np.flatnonzero(model.coef_)), set(np.flatnonzero(truth))
                    assert record.mse == pytest.approx(np.linalg.norm(model.coef_ - truth) ** 2, rel=1e-12)
                    residual = y_test - X_test @ model.coef_
                    assert record.prediction_error == pytest.approx(residual @ residual / 70, rel=1e-12)
                    assert record.nonzeros == len(chosen) > 0
                    assert record.precision == len(chosen & right) / len(chosen)
                    assert record.recall == len(chosen & right) / 4
                    with (tmp_path / "model").open("wb") as file:
                        pickle.dump(model, file, protocol=pickle.HIGHEST_PROTOCOL)
                    assert record.bytes == (tmp_path / "model").stat().st_size
                    assert record.diverged is False
                    assert record.seconds > seconds
                    seconds = record.seconds
    assert {type(value) for record in found for value in record} == {str, int, float, bool}
    assert {r.precision for r in found} != {1.0}


def test_parallel_and_serial_records_are_the_same():
    methods = TWO | {
        "SGD": SGDRegressor(penalty="l1"),
        "auto": SparseRegressor(),
        "steps": OnlineHardThresholding(5, step_size=lambda t, k: 0.3 / (t + k)),
    }
    stream = lambda seed: SparseLinearStream(n_features=30, n_active=4, seed=seed + 100)  # noqa: E731
    serial = run(methods, stream, [50, 300], [1, 2, 3])
    parallel = run(methods, stream, [50, 300], [1, 2, 3], n_jobs=2)
    assert without_costs(parallel) == without_costs(serial)
    assert len(serial) == 30
    assert [r.bytes for r in parallel] == pytest.approx([r.bytes for r in serial], rel=0.02)


def test_a_stream_may_end():
    class Finite:
        coef = np.ones(3)

        def __init__(self, seed):
            self.X = np.random.default_rng(seed).standard_normal((370, 3))

        def draw(self, n):
            X, self.X = self.X[:n], self.X[n:]
            return X, X @ self.coef

    rda = {"RDA": TWO["RDA"]}
    assert run(rda, Finite, [300], [1])[0].t == 300
    with pytest.raises(ValueError, match="gave 44 rows, not 45"):
        run(rda, Finite, [301], [1])


def test_a_method_that_raises_does_not_take_the_others_with_it():
    methods = {"RDA": TWO["RDA"], "broken": Fake(400), "hard": TWO["hard"]}
    with pytest.raises(
        FailedRunsError, match=r"2 of 6 runs failed(?s:.*)'broken', seed 2: ZeroDivisionError: enough"
    ) as e:
        run(methods, TOEPLITZ, [50, 500], [1, 2])
    assert e.value.comparison.methods == ("RDA", "hard")
    assert len(e.value.comparison) == 8
    assert "in partial_fit" in e.value.__notes__[0]


def test_an_interrupt_ends_a_comparison():
    with pytest.raises(KeyboardInterrupt):
        run({"RDA": TWO["RDA"], "stops": Fake(400, "interrupt")}, TOEPLITZ, [50, 500], [1])


class Uncopied:
    """A parameter that cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


def test_a_method_that_cannot_be_copied_is_named():
    methods = {"RDA": TWO["RDA"], "odd": Fake(1000, Uncopied())}
    with pytest.raises(FailedRunsError, match=r"1 of 2 runs failed(?s:.*)'odd', seed 1: TypeError: no copies") as e:
        run(methods, TOEPLITZ, [50], [1])
    assert [r.method for r in e.value.comparison] == ["RDA"]


def test_a_method_without_coefficients_is_named():
    class Silent(Fake):
        def partial_fit(self, X, y):
            return self

    with pytest.raises(FailedRunsError, match=r"'silent', seed 1: AttributeError: .*no attribute 'coef_'"):
        run({"silent": Silent()}, TOEPLITZ, [40], [1])


def test_only_learning_is_timed_and_modules_are_there_before(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("thresher.baselines._runs.time.perf_counter", lambda: clock[0])

    class Slow(Fake):
        def partial_fit(self, X, y):
            clock[0] += len(y)
            super().partial_fit(X, y)
            if self.rows_ > 500 and self.what == "import" and "antigravity" not in sys.modules:
                clock[0] += 1e6
                monkeypatch.setitem(sys.modules, "antigravity", None)
            calls.append(self.what)
            return self

        def predict(self, X):
            clock[0] += 1e9
            return super().predict(X)

    calls = []
    found = run({what: Slow(1000, what) for what in ("import", "plain")}, TOEPLITZ, [256, 600], [1, 2])
    assert [r.seconds for r in found] == 4 * [256.0, 600.0]
    assert [calls.count(what) for what in ("import", "plain")] == [9, 6]  # a run has three blocks


def test_blas_has_one_thread_and_seeds_reach_random_states():
    seen = []

    class Random(Fake):
        def __init__(self, random_state=None):
            super().__init__(1000)
            self.random_state = random_state

        def partial_fit(self, X, y):
            threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
            seen.append((self.random_state, threads))
            return super().partial_fit(X, y)

    with threadpool_limits(2, user_api="blas"):
        run({"free": Random(), "fixed": Random(7)}, TOEPLITZ, [10], [3, 4])
    assert seen == [(3, {1}), (7, {1}), (4, {1}), (7, {1})]


def test_warnings_are_told_once_for_each_method():
    methods = {"wild": DualAveraging(gamma=1e-3), "talks": Fake(100, "warn"), "RDA": TWO["RDA"]}
    with pytest.warns(ConvergenceWarning) as caught:
        found = run(methods, TOEPLITZ, [50, 3000], range(3))
    texts = sorted(str(w.message) for w in caught)
    assert [text[:16] for text in texts] == ["'talks', seed 0:", "'wild', seed 0: "]
    assert all(w.filename == __file__ for w in caught)
    assert {r.method for r in found if r.diverged} == {"wild"}
    assert found.best() == "RDA"
    assert "wild (diverged)" in repr(found)


def test_empty_sets_and_coefficients_that_are_not_finite():
    methods = {"zero": Fake(1, "zero"), "nan": Fake(50, "nan"), "one": Fake(1000)}
    found = run(methods, TOEPLITZ, [40, 80], [5], n_test=0)
    zero, nan = found[1], found[3]
    assert (zero.nonzeros, zero.precision, zero.recall, zero.diverged) == (0, 1.0, 0.0, False)
    assert (nan.mse, nan.diverged, found[2].diverged) == (np.inf, True, False)
    assert np.isnan(found[0].prediction_error)
    predicted = run(methods | {"says so": Fake(50, "says so")}, TOEPLITZ, [40, 80], [5])
    assert np.isfinite(predicted[2].prediction_error)
    assert predicted[3].prediction_error == predicted.median("prediction_error")["nan"][1] == np.inf
    assert [r.diverged for r in predicted] == [False, False, False, True, False, False, False, True]
    nothing = run(methods, partial(TOEPLITZ, n_active=0), [40], [5])
    assert [(r.precision, r.recall) for r in nothing] == [(1.0, 1.0), (0.0, 1.0), (0.0, 1.0)]


class Bare:
    """A stream without a truth, of sparse rows."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def draw(self, n):
        X = self.rng.standard_normal((n, 8))
        X[X < 0.5] = 0.0
        return scipy.sparse.csr_array(X), X[:, 1] + 0.1 * self.rng.standard_normal(n)


def test_without_a_truth_only_predictions_are_judged():
    found = run([SparseRegressor(), TWO["RDA"]], Bare, [60, 300], [1, 2])
    assert found.methods == ("SparseRegressor", "DualAveraging")
    for record in found:
        assert np.isnan([record.mse, record.precision, record.recall]).all()
        assert 0.0 < record.prediction_error < 1.0
        assert record.nonzeros > 0
    errors = {m: np.mean([r.prediction_error for r in found if (r.method, r.t) == (m, 300)]) for m in found.methods}
    assert found.best("prediction_error") == min(errors, key=errors.get) == "SparseRegressor"
    assert errors["DualAveraging"] > 1.01 * errors["SparseRegressor"]
    header = repr(found).splitlines()[1].split()
    assert "mse" not in header
    assert "bytes" in header
    with pytest.raises(ValueError, match="another metric"):
        found.best()


def test_rows_are_drawn_from_the_seed_alone_and_released():
    class Impure(SparseLinearStream):
        alive: ClassVar = weakref.WeakSet()
        calls = 0

        def __init__(self, seed):
            Impure.calls += 1
            Impure.alive.add(self)
            super().__init__(n_features=30, n_active=4, seed=Impure.calls)

    with pytest.raises(ValueError, match="seed alone"):
        run(TWO, Impure, [300], [1])
    gc.collect()
    assert Impure.calls == 2
    assert not Impure.alive


def test_the_truth_is_the_one_of_the_beginning():
    class Drifting(SparseLinearStream):
        def draw(self, n):
            rows = super().draw(n)
            self.coef += 1.0
            return rows

    stream = partial(Drifting, n_features=30, n_active=4)
    found = run({"zero": Fake(1, "zero")}, stream, [10, 600], [1])
    truth = stream(seed=1).coef
    assert [r.mse for r in found] == pytest.approx([truth @ truth] * 2)
    assert [r.recall for r in found] == [0.0, 0.0]


def test_rows_may_be_frames_of_several_types():
    class Frames(SparseLinearStream):
        def draw(self, n):
            X, y = super().draw(n)
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
            return frame.assign(x1=frame.x1 > 0.0), pd.Series(y)

    found = run(TWO, partial(Frames, n_features=8, n_active=2), [60, 300], [1])
    assert [r.t for r in found] == [60, 300, 60, 300]
    assert all(r.nonzeros > 0 for r in found)


def test_a_method_that_works_in_place_spoils_nothing_for_others():
    class InPlace(Fake):
        def partial_fit(self, X, y):
            super().partial_fit(X, y)
            X[:] = 0.0
            return self

    rows = np.random.default_rng(1).standard_normal((400, 7))

    class Kept:
        def __init__(self, seed):
            self.drawn = 0

        def draw(self, n):
            self.drawn += n
            return rows[self.drawn - n : self.drawn, 1:], rows[self.drawn - n : self.drawn, 0]

    alone, among = run(TWO, Kept, [300], [1]), run({"in place": InPlace(1000)} | TWO, Kept, [300], [1])
    assert list(map(repr, without_costs(among)[1:])) == list(map(repr, without_costs(alone)))


def test_faults_are_named():
    good = {"methods": TWO, "stream": TOEPLITZ, "checkpoints": [10], "seeds": [1]}

    class Short:
        def __init__(self, seed, length=75):
            self.X = np.ones((length, 3))

        def draw(self, n):
            X, self.X = self.X[:n], self.X[n:]
            return X, np.ones(len(X))

    for error, message, changed in (
        (ValueError, "mapping that names them", {"methods": [SGDRegressor(), SGDRegressor()]}),
        (ValueError, "at least one", {"methods": {}}),
        (TypeError, "is a class; pass .*DualAveraging", {"methods": {"RDA": DualAveraging}}),
        (TypeError, "no partial_fit", {"methods": {"x": BaseEstimator()}}),
        (TypeError, "strings", {"methods": {3: DualAveraging()}}),
        (ValueError, "increasing", {"checkpoints": [10, 10]}),
        (ValueError, "increasing", {"checkpoints": []}),
        (ValueError, "positive integer", {"checkpoints": [0]}),
        (TypeError, "not iterable", {"checkpoints": 10}),
        (TypeError, "not iterable", {"seeds": 3}),
        (ValueError, "different integers", {"seeds": [1, 1]}),
        (ValueError, "integers", {"seeds": [0.5]}),
        (ValueError, "n_test", {"n_test": -1}),
        (ValueError, "gave 5 rows, not 10", {"stream": Short}),
        (ValueError, "gave 0 rows, not 144", {"stream": partial(Short, length=256), "n_test": 0, "checkpoints": [400]}),
        (TypeError, "draw", {"stream": lambda seed: 3}),
    ):
        with pytest.raises(error, match=message):
            run(**(good | changed))


def made(values, diverged=()):
    """A comparison with these errors: name -> row count -> values by seed."""
    return Comparison(
        Record(name, seed, t, mse, mse, 5, 1.0, 0.0, 0.1, 10, name in diverged)
        for name, curve in values.items()
        for t, errors in curve.items()
        for seed, mse in enumerate(errors)
    )


def test_medians_and_tables():
    found = made({"a": {10: [3.0, 1.0, np.inf], 20: [2.0, 2.5, 9.0]}, "b": {10: [1.0, 4.0], 20: [0.1, 0.3]}}, ["b"])
    np.testing.assert_array_equal(found.median()["a"], [3.0, 2.5])
    np.testing.assert_allclose(found.median()["b"], [2.5, 0.2])
    assert (found.seeds, found.checkpoints) == ((0, 1, 2), (10, 20))
    assert found.best() == "a"  # the other diverged
    title, header, *rows = repr(found).splitlines()
    assert title == "Medians over 3 seed(s) after 20 rows"
    assert header.split() == ["method", "mse", "prediction", "error", *METRICS[2:]]
    assert [row.split()[:3] for row in rows] == [["a", "2.5", "2.5"], ["b", "(diverged)", "0.2"]]
    assert found.to_markdown().splitlines()[2] == "| a | 2.5 | 2.5 | 5 | 1 | 0 | 0.1 | 10 |"
    assert found[1:3] == (found[1], found[2])
    assert pd.DataFrame(found.to_dict()).groupby("method").mse.max()["a"] == np.inf
    with pytest.raises(ValueError, match="prediction_error"):
        found.median("error")
    measures = {"few": (5, 0.4, 0.9, 2.0, 70), "many": (9, 0.8, 0.3, 1.0, 90)}
    found = Comparison(Record(n, 0, 10, 0.1, 0.2, *m, False) for n, m in measures.items())
    best = {metric: found.best(metric) for metric in METRICS[2:]}
    assert best == {"nonzeros": "few", "precision": "many", "recall": "few", "seconds": "many", "bytes": "few"}


def test_tables_hold_any_name():
    found = made({"a|b": {10: [1.0]}, "two\nlines": {10: [3.0]}})
    rows = [row.split(" | ")[:2] for row in found.to_markdown().splitlines()[2:]]
    assert rows == [[r"| a\|b", "1"], ["| two lines", "3"]]
    assert [row[:12] for row in repr(found).splitlines()[2:]] == ["a|b         ", "two lines   "]
    assert repr(Comparison([])) == "Comparison of nothing"


def test_the_picture_shows_medians_and_labels_that_can_be_read():
    rng = np.random.default_rng(1)
    values = {f"method {k}": {t: list(rng.random(5) / t) for t in (10, 100, 1000)} for k in range(18)}
    values["lost"] = {t: [1e30] * 5 for t in (10, 100, 1000)}
    found = made(values, ["lost"])
    shown = found.plot(highlight=["method 3", "method 7"])
    assert list(shown.lines_) == [*list(values)[:-1], "lost, diverged"]
    for name in list(values)[:-1]:
        np.testing.assert_array_equal(shown.lines_[name].get_xdata(), [10, 100, 1000])
        np.testing.assert_allclose(shown.lines_[name].get_ydata(), [np.median(v) for v in values[name].values()])
    assert (shown.ax_.get_xscale(), shown.ax_.get_yscale()) == ("log", "log")
    assert shown.ax_.get_ylim()[1] < 1.0  # what diverged does not set the scale
    colours = [line.get_color() for line in shown.lines_.values()]
    assert len({colours[3], colours[7], colours[0]}) == len(set(colours)) == 3
    shown.figure_.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in shown.ax_.texts), key=lambda box: box.y0)
    assert len(boxes) == 19
    assert all(low.y1 <= high.y0 + 1.0 for low, high in pairwise(boxes))
    assert boxes[0].y0 > 0.0
    assert boxes[-1].y1 < shown.figure_.bbox.height
    best = found.plot()
    assert len({line.get_color() for line in best.lines_.values()}) == 9  # eight, and grey
    _, ax = plt.subplots()
    for metric in METRICS:
        assert found.plot(metric, ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="no method 'x'"):
        found.plot(highlight=["x"])
    plt.close("all")


@pytest.mark.parametrize("layout", ["constrained", "tight"])
def test_names_have_room_beside_other_axes(layout):
    values = {f"method ${{ called {k}$": {t: [(k + 1) / t] for t in (10, 100)} for k in range(23)}
    values |= {"infinite": {t: [np.inf] for t in (10, 100)}, "in the end": {10: [0.1], 100: [np.inf]}}
    found = made(values, ["infinite"])
    figure, axes = plt.subplots(1, 2, figsize=(15, 8), layout=layout)
    for ax in axes:
        for metric in ("prediction_error", "mse"):  # twice, which makes no more room
            ax.clear()
            shown = found.plot(metric, ax=ax)
        assert list(shown.lines_) == [*list(values)[:-2], "infinite, diverged", "in the end"]
        assert {"infinite, diverged \N{UPWARDS ARROW}", "in the end \N{UPWARDS ARROW}"} == {
            text.get_text() for text in sorted(ax.texts, key=lambda text: text.get_position()[1])[-2:]
        }
        threads = [line.get_xydata() for line in ax.lines if line.get_label() == "_thread"]
        assert np.isfinite(threads).all()
    figure.canvas.draw()
    left, right = ([text.get_window_extent() for text in ax.texts] for ax in axes)
    assert len(left) == len(right) == 25
    assert max(box.x1 for box in left) < axes[1].yaxis.get_tightbbox().x0
    assert max(box.x1 for box in right) <= figure.bbox.width
    assert axes[0].get_position().width > 0.2
    for boxes in (left, right):
        boxes.sort(key=lambda box: box.y0)
        assert all(low.y1 <= high.y0 + 1.0 for low, high in pairwise(boxes))
    plt.close(figure)
    made({"infinite": {10: [np.inf]}}).plot()
    plt.close("all")


def test_progress_is_shown_when_asked_for(capsys, monkeypatch):
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [1, 2])
    assert capsys.readouterr() == ("", "")
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [1, 2], progress=True)
    assert re.fullmatch(r"1 of 2, about \d+ s left: RDA, seed 1\n2 of 2: RDA, seed 2\n", capsys.readouterr().err)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [1, 2])
    assert "2 of 2" in capsys.readouterr().err  # the bar
    monkeypatch.setitem(sys.modules, "rich", None)
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [7])
    assert capsys.readouterr().err == "1 of 1: RDA, seed 7\n"
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [7], progress=False)
    assert capsys.readouterr() == ("", "")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"thresher\[plot\]"):
        made({"a": {10: [1.0]}}).plot()
