"""Paths and histories print as tables and become data frames."""

import sys

import numpy as np
import pandas as pd
import pytest

from thresher import LowRankRegressor, OnlineHardThresholding, ReducedRankRegressor, SparseRegressor
from thresher._utils.text_table import text_table
from thresher.io.sources.synthetic import SparseLinearStream


@pytest.fixture(scope="module")
def rows():
    X, y = SparseLinearStream(12, 3, signal=1.0, seed=4).draw(700)
    return pd.DataFrame(X, columns=[f"col {j}" for j in range(12)]), y


@pytest.mark.parametrize("model", [SparseRegressor(selection="ebic"), OnlineHardThresholding(3, fit_intercept=True)])
def test_a_path_prints_what_came_and_what_left(rows, model):
    path = model.partial_fit(*rows).path(5)
    text = repr(path).split("\n")
    assert len(text) == 1 + len(path.sizes)
    kept = set()
    for line, size in zip(text[1:], path.sizes, strict=True):
        assert line.split()[0] == str(size)
        assert ("<- best" in line) == (size == np.argmin(path.criterion))
        change = line.split("  +", 1)[-1].split("<-")[0] if "+" in line else ""
        for piece in f"+{change}".replace(" -", "|-").replace(" +", "|+").split("|"):
            if piece.strip("+ "):
                (kept.add if piece[0] == "+" else kept.discard)(piece[1:].strip())
        assert kept == {f"col {j}" for j in np.flatnonzero(path.coef[size])}


def test_a_path_as_a_frame(rows):
    path = SparseRegressor(selection="ebic").partial_fit(*rows).path(4)
    frame = path.to_frame()
    assert list(frame.index) == [0, 1, 2, 3, 4]
    for size in range(5):
        values = frame.loc[size].drop(["loss", "criterion", "intercept"])
        fitted = rows[0][values.index].to_numpy() @ values.to_numpy() + frame.loc[size, "intercept"]
        assert frame.loc[size, "loss"] == pytest.approx(0.5 * np.mean((rows[1] - fitted) ** 2))
        assert np.count_nonzero(values) == size


def test_ranks_have_no_changes(rows):
    Y = rows[0].to_numpy()[:, :3] + np.random.default_rng(0).standard_normal((700, 3))
    path = ReducedRankRegressor().fit(rows[0], Y).path()
    assert repr(path).split("\n")[0].split() == ["size", "loss", "criterion"]
    assert list(path.to_frame().columns) == ["loss", "criterion"]
    with pytest.raises(AttributeError, match="matrices"):
        path.supports()


def test_a_history_is_a_list_that_prints_as_a_table(rows):
    model = SparseRegressor().partial_fit(*rows)
    history = model.selection_history_
    assert isinstance(history, list)
    lines = repr(history).split("\n")
    assert lines[0].split() == ["rows", "size", "came", "left"]
    assert len(lines) <= 22 < len(history)
    assert lines[-1].split()[:2] == [str(history[-1].n_samples), str(history[-1].size)]
    frame = history.to_frame()
    assert list(frame.index) == [record.n_samples for record in history]
    last = frame.iloc[-1].drop("size")
    assert set(last.index[last != 0]) == {f"col {j}" for j in history[-1].support}
    assert last[[f"col {j}" for j in history[-1].support]].tolist() == history[-1].values.tolist()
    assert len(repr(history[-1])) < 100


def test_histories_of_matrices_and_of_nothing(rows):
    X = rows[0].to_numpy().reshape(700, 3, 4)
    history = LowRankRegressor().partial_fit(X, rows[1]).selection_history_
    assert repr(history).split("\n")[0].split() == ["rows", "size"]
    assert list(history.to_frame().columns) == ["size"]
    assert type(history)().to_frame().empty
    assert repr(type(history)()) == "rows  size"


def test_names_cannot_do_anything_on_a_terminal():
    X, y = SparseLinearStream(3, 1, signal=1.0, seed=4).draw(300)
    model = SparseRegressor(1).partial_fit(pd.DataFrame(X, columns=["a\x1b[31m", "b", "c"]), y)
    for shown in (repr(model.path(2)), repr(model.selection_history_)):
        assert "\x1b" not in shown
        assert "a\\x1b" in shown


def test_long_tables_show_both_ends():
    lines = text_table(["n"], [[str(k)] for k in range(100)]).split("\n")
    assert lines[:3] == ["n", "0", "1"]
    assert lines[-1] == "99"
    assert len(lines) == 22


def test_frames_need_pandas(rows, monkeypatch):
    path = SparseRegressor(2).fit(*rows).path(2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        path.to_frame()
