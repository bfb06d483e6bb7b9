"""Comparisons: every column recomputed, nothing lost, and the same records however they came about."""

import json
import pickle
import signal
import sys
import warnings
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

from thresher import SparseRegressor
from thresher.rivals import Comparison, DualAveraging, FailedRunsError, compare
from thresher.rivals._comparison import METRICS, Record
from thresher.rivals._fingerprints import settings_text
from thresher.rivals._saved_records import read_records
from thresher.streams.synthetic import SparseLinearStream

mpl.use("Agg")

TOEPLITZ = partial(SparseLinearStream, n_features=30, n_active=4, correlation=0.4, signal=0.8)
TWO = {
    "hard": SparseRegressor(6, rule="hard", n_steps=2, n_warmup=50, fit_intercept=False),
    "RDA": DualAveraging(0.1, gamma=9.0, rho=0.02),
}
run = partial(compare, n_jobs=1, n_test=70)


def without_seconds(found):
    return [record._replace(seconds=0.0) for record in found]


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
    assert len({(r.seed, r.data) for r in found}) == 2
    assert "gamma=9.0" in found[-1].settings
    assert "DualAveraging" in found[-1].settings


def test_resumed_parallel_and_serial_records_are_the_same(tmp_path):
    methods = TWO | {
        "SGD": SGDRegressor(penalty="l1"),
        "auto": SparseRegressor(n_warmup=20),
        "steps": SparseRegressor(5, step_size=lambda t, k: 0.3 / (t + k)),
    }
    stream = lambda seed: SparseLinearStream(n_features=30, n_active=4, seed=seed + 100)  # noqa: E731
    serial = run(methods, stream, [50, 300], [1, 2, 3], output=tmp_path / "serial.jsonl")
    parallel = run(methods, stream, [50, 300], [1, 2, 3], n_jobs=2, output=tmp_path / "parallel.jsonl")
    assert without_seconds(parallel) == without_seconds(serial)

    lines = (tmp_path / "parallel.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 30
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"".join(lines[:9]) + lines[9][:40])
    resumed = run(methods, stream, [50, 300], [1, 2, 3], output=torn)
    assert without_seconds(resumed) == without_seconds(serial)
    kept = read_records(torn)[:8]  # four runs were whole
    assert set(kept) < set(resumed)
    assert torn.read_bytes().startswith(b"".join(lines[:9]))
    assert set(without_seconds(read_records(torn))) == set(without_seconds(serial))
    before = torn.read_bytes()
    assert list(run(methods, stream, [50, 300], [1, 2, 3], output=torn)) == list(resumed)
    assert torn.read_bytes() == before


def test_only_what_is_missing_is_computed(tmp_path):
    path = tmp_path / "found.jsonl"
    first = run({"RDA": TWO["RDA"]}, TOEPLITZ, [50, 100], [1], output=path)
    more = run(TWO, TOEPLITZ, [50, 100], [2, 1], output=path)
    assert set(first) < set(more)  # with the same seconds
    assert len(path.read_text().splitlines()) == len(more) == 8
    assert without_seconds(more) == without_seconds(run(TWO, TOEPLITZ, [50, 100], [2, 1]))
    assert [r.t for r in run({"RDA": TWO["RDA"]}, TOEPLITZ, [100], [1], output=path)] == [100]
    assert len(path.read_text().splitlines()) == 8
    longer = run({"RDA": TWO["RDA"]}, TOEPLITZ, [50, 100, 150], [1], output=path)
    assert without_seconds(longer)[:2] == without_seconds(first)


def test_a_file_of_other_settings_or_rows_is_refused(tmp_path):
    path = tmp_path / "found.jsonl"
    run(TWO, TOEPLITZ, [50], [1], output=path)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"'RDA' with other settings(?s:.*)gamma=9.0(?s:.*)gamma=8.0(?s:.*)another name"
    ):
        run({"RDA": DualAveraging(0.1, gamma=8.0, rho=0.02)}, TOEPLITZ, [50], [2], output=path)
    for stream, n_test in ((partial(TOEPLITZ, noise=2.0), 70), (TOEPLITZ, 71), (partial(TOEPLITZ, signal=0.7), 70)):
        with pytest.raises(ValueError, match=r"seed 1 with other rows.*another file"):
            compare(TWO, stream, [50], [1], n_test=n_test, n_jobs=1, output=path)
    assert path.read_bytes() == before
    path.write_bytes(b'{"method": "RDA"}\n' + before)
    with pytest.raises(ValueError, match=r"Line 1 of .* not a record"):
        run(TWO, TOEPLITZ, [50], [1], output=path)


def test_an_interrupt_loses_nothing_that_was_finished(tmp_path):
    path = tmp_path / "found.jsonl"
    methods = {"RDA": TWO["RDA"], "stops": Fake(400, "interrupt"), "hard": TWO["hard"]}
    with pytest.raises(KeyboardInterrupt):
        run(methods, TOEPLITZ, [50, 500], [1], output=path)
    assert [(r.method, r.t) for r in read_records(path)] == [("RDA", 50), ("RDA", 500)]
    again = run(TWO, TOEPLITZ, [50, 500], [1], output=path)
    assert without_seconds(again) == without_seconds(run(TWO, TOEPLITZ, [50, 500], [1]))


def test_a_method_that_raises_does_not_take_the_others_with_it(tmp_path):
    path = tmp_path / "found.jsonl"
    methods = {"RDA": TWO["RDA"], "broken": Fake(400), "hard": TWO["hard"]}
    with pytest.raises(
        FailedRunsError, match=r"2 of 6 runs failed(?s:.*)'broken', seed 2: ZeroDivisionError: enough"
    ) as e:
        run(methods, TOEPLITZ, [50, 500], [1, 2], output=path)
    assert e.value.comparison.methods == ("RDA", "hard")
    assert len(e.value.comparison) == 8
    assert "in partial_fit" in e.value.__notes__[0]
    assert set(read_records(path)) == set(e.value.comparison)


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


def test_without_a_truth_only_predictions_are_judged(tmp_path):
    path = tmp_path / "found.jsonl"
    found = run([*TWO.values()], Bare, [60, 300], [1, 2], output=path)
    assert found.methods == ("SparseRegressor", "DualAveraging")
    for record in found:
        assert np.isnan([record.mse, record.precision, record.recall]).all()
        assert 0.0 < record.prediction_error < 1.0
        assert record.nonzeros > 0
    again = run([*TWO.values()], Bare, [60, 300], [1, 2], output=path)
    pd.testing.assert_frame_equal(pd.DataFrame(again.to_dict()), pd.DataFrame(found.to_dict()))
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # no NaN, which JSON does not know
    assert found.best("prediction_error") in found.methods
    header = repr(found).splitlines()[1].split()
    assert "mse" not in header
    assert "bytes" in header
    with pytest.raises(ValueError, match="another metric"):
        found.best()


def test_rows_that_are_too_many_to_keep_are_drawn_again(monkeypatch):
    class Counted(SparseLinearStream):
        calls = 0

        def __init__(self, seed):
            Counted.calls += 1
            super().__init__(n_features=30, n_active=4, correlation=0.4, signal=0.8, seed=seed)

    kept = run(TWO, Counted, [100, 300], [1, 2])
    assert Counted.calls == 2
    monkeypatch.setattr("thresher.rivals._runs.KEPT_BYTES", 300 * 30 * 8 - 1)
    assert without_seconds(run(TWO, Counted, [100, 300], [1, 2])) == without_seconds(kept)
    assert Counted.calls == 6

    class Impure(Counted):
        def __init__(self, seed):
            super().__init__(Counted.calls)

    with pytest.raises(ValueError, match="seed alone"):
        run(TWO, Impure, [300], [1])


def test_a_method_that_works_in_place_spoils_nothing_for_others():
    class InPlace(Fake):
        def partial_fit(self, X, y):
            super().partial_fit(X, y)
            X[:] = 0.0
            return self

    alone, among = run(TWO, TOEPLITZ, [300], [1]), run({"in place": InPlace(1000)} | TWO, TOEPLITZ, [300], [1])
    assert without_seconds(among)[1:] == without_seconds(alone)


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
        (TypeError, "checkpoints must be a sequence", {"checkpoints": 10}),
        (TypeError, r"\[3\] or a range", {"seeds": 3}),
        (ValueError, "different integers", {"seeds": [1, 1]}),
        (ValueError, "integers", {"seeds": [0.5]}),
        (ValueError, "n_test", {"n_test": -1}),
        (ValueError, "gave 5 rows where 10", {"stream": Short}),
        (
            ValueError,
            "gave 0 rows where 144",
            {"stream": partial(Short, length=256), "n_test": 0, "checkpoints": [400]},
        ),
        (TypeError, "draw", {"stream": lambda seed: 3}),
        (FileNotFoundError, "nowhere", {"output": "/nowhere/at/all.jsonl"}),
    ):
        with pytest.raises(error, match=message):
            run(**(good | changed))


def test_settings_tell_what_matters_and_nothing_else():
    def text(value):
        return settings_text(Fake(what=value))

    def times(c):
        return lambda k: c / k

    assert text(times(2)) == text(times(2)) != text(times(3))
    assert text(eval("lambda k: [k for _ in range(3)]")) == text(eval("\n\nlambda k: [k for _ in range(3)]"))
    assert text(lambda k: k + 1) != text(lambda k: k + 2)
    assert text(np.arange(3)) == text(np.arange(3)) != text(np.arange(4))
    assert text(np.float64(0.1)) == text(0.1) != text("0.1")
    assert text(partial(max, 1)) == text(partial(max, 1)) != text(partial(max, 2))
    assert text([object()]) == text([object()])
    assert text({"a": SGDRegressor()}) != text({"a": DualAveraging()})
    assert settings_text(Fake(what=SGDRegressor(alpha=1.0))) != settings_text(Fake(what=SGDRegressor(alpha=2.0)))


def made(values, diverged=()):
    """A comparison with these errors: name -> row count -> values by seed."""
    return Comparison(
        Record(name, seed, t, mse, mse, 5, 1.0, 0.0, 0.1, 10, name in diverged, "", "")
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


def test_progress_is_shown_when_asked_for(capsys, monkeypatch):
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [1, 2])
    assert capsys.readouterr() == ("", "")
    run({"RDA": TWO["RDA"]}, TOEPLITZ, [10], [1, 2], progress=True)
    assert capsys.readouterr().err == "1 of 2: RDA, seed 1\n2 of 2: RDA, seed 2\n"
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
