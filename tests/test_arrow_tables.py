"""Rows from anything that speaks Arrow: the same model as from arrays, and bad tables are refused as a whole."""

import subprocess
import sys
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import thresher
from thresher import Gram, OnlineHardThresholding, SparseRegressor
from thresher._utils.arrow import Table
from thresher._utils.locks import lock_of

N, D = 700, 6
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N, D)) + 3.0
    y = 2.0 * X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(N)
    return X, y, rng.uniform(0.5, 2.0, N)


def arrow(X, y, w=None, **more):
    columns = dict(zip(NAMES, X.T, strict=True)) | {"price": y} | ({} if w is None else {"w": w}) | more
    return pa.table({name: pa.array(column) for name, column in columns.items()})


class Stream:
    """An object that has nothing but the Arrow protocol, and hands over its rows once."""

    def __init__(self, table, rows=97):
        self._reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows))

    def __arrow_c_stream__(self, requested_schema=None):
        reader, self._reader = self._reader, None
        return reader.__arrow_c_stream__(requested_schema)


def as_pandas(table):
    return table.to_pandas()


KINDS = [lambda t: t, lambda t: t.to_reader(50), Stream, pl.from_arrow, as_pandas]


@pytest.mark.parametrize("kind", KINDS, ids=["table", "reader", "stream", "polars", "pandas"])
@pytest.mark.parametrize("weighted", [False, True])
def test_learns_the_same_bits_as_from_arrays(data, kind, weighted):
    X, y, w = data
    weights, name = (w, "w") if weighted else (None, None)
    table = arrow(X, y, w if weighted else None)
    expected = SparseRegressor().partial_fit(X, y, weights)
    model = SparseRegressor().partial_fit(kind(table), "price", name)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == NAMES
    fitted = SparseRegressor().fit(kind(table), y="price", sample_weight=name)
    np.testing.assert_array_equal(fitted.coef_, SparseRegressor().fit(X, y, weights).coef_)
    gram = Gram(D).absorb(kind(table), "price", name)
    np.testing.assert_array_equal(gram.comoment(), Gram(D).absorb(X, y, weights).comoment())
    np.testing.assert_array_equal(fitted.predict(kind(table)), SparseRegressor().fit(X, y, weights).predict(X))


def test_blocks_are_cut_from_large_batches_without_changing_a_bit(rng):
    X, y = rng.standard_normal((20_000, D)), rng.standard_normal(20_000)
    assert len(list(Table(arrow(X, y), "price"))) > 1
    gram = Gram(D).absorb(arrow(X, y), "price")
    np.testing.assert_array_equal(gram.comoment(), Gram(D).absorb(X, y).comoment())
    model = OnlineHardThresholding(2).partial_fit(arrow(X, y), "price")
    np.testing.assert_array_equal(model.coef_, OnlineHardThresholding(2).partial_fit(X, y).coef_)


@pytest.mark.parametrize("estimator", [SparseRegressor(selection="cv"), OnlineHardThresholding(fit_intercept=True)])
def test_cross_validation_sees_the_rows_of_a_stream(data, estimator):
    X, y, _ = data
    streamed = thresher.SparseRegressor if isinstance(estimator, SparseRegressor) else OnlineHardThresholding
    model = streamed(**estimator.get_params()).fit(Stream(arrow(X, y)), "price")
    expected = estimator.fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.selection_.criterion, expected.selection_.criterion)


def test_columns_are_found_by_name(data):
    X, y, _ = data
    table = arrow(X, y, note=["text"] * N)
    model = SparseRegressor().fit(table, "price", features=["x4", "x1"])
    np.testing.assert_array_equal(model.coef_, SparseRegressor().fit(X[:, [4, 1]], y).coef_)
    shuffled = table.select(["price", "x1", "note", "x4", "x0"])
    for X_new in (shuffled, pl.from_arrow(shuffled), shuffled.to_pandas()):
        np.testing.assert_array_equal(model.predict(X_new), model.predict(table))
    model.partial_fit(shuffled, "price")
    assert model.n_samples_seen_ == 2 * N
    with pytest.raises(ValueError, match="'x0' differ"):
        model.partial_fit(table, "price", features=["x4", "x0"])


def test_numbers_of_any_type(data):
    X, y, _ = data
    whole = np.abs(np.round(X * 10))
    table = arrow(whole, y)
    for name, kind in zip(
        NAMES, [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)], strict=True
    ):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(name).cast(kind))
    gram = Gram(D).absorb(table, "price")
    np.testing.assert_array_equal(gram.comoment(), Gram(D).absorb(whole, y).comoment())
    truth = pa.table({"t": [True, False, True], "y": [1.0, 2.0, 3.0]})
    assert Gram(1).absorb(truth, "y").mean_x == pytest.approx([2 / 3])


def colours(rng, n, levels=("blue", "red", "green")):
    codes = rng.integers(0, len(levels), n)
    return codes, pa.DictionaryArray.from_arrays(codes.astype(np.int8), list(levels))


def test_dictionary_columns_are_categories(rng, data):
    X, y, _ = data
    codes, column = colours(rng, N)
    y = y + 5.0 * (codes == 1)
    table = arrow(X, y).append_column("colour", column)
    one_hot = np.column_stack([codes == 0, codes == 2, codes == 1]).astype(float)  # sorted by name
    model = SparseRegressor(3).fit(table, "price")
    assert list(model.feature_names_in_) == [*NAMES, "colour=blue", "colour=green", "colour=red"]
    expected = SparseRegressor(3).fit(np.column_stack([X, one_hot]), y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    frame = table.to_pandas()
    np.testing.assert_array_equal(model.predict(frame), model.predict(table))
    np.testing.assert_array_equal(model.predict(frame.astype({"colour": str})), model.predict(table))
    some = SparseRegressor().fit(table, "price", features=["x1", "colour=red"])
    np.testing.assert_array_equal(some.coef_, SparseRegressor().fit(np.column_stack([X[:, 1], codes == 1]), y).coef_)


def test_levels_that_were_not_there_are_refused_and_predicted_with_zeros(rng, data):
    X, y, _ = data
    _, column = colours(rng, N)
    model = SparseRegressor().fit(arrow(X, y).append_column("colour", column), "price")
    other = pa.DictionaryArray.from_arrays(np.zeros(N, np.int8), ["black"])
    new = arrow(X, y).append_column("colour", other)
    with pytest.raises(ValueError, match=r"Row 1: column 'colour' has the level 'black'.*features=\['colour=black'"):
        model.partial_fit(new, "price")
    with pytest.warns(UserWarning, match="700 values have levels"):
        predicted = model.predict(new)
    zeros = np.column_stack([X, np.zeros((N, 3))])
    np.testing.assert_allclose(predicted, zeros @ model.coef_ + model.intercept_, rtol=1e-12)
    with pytest.raises(ValueError, match="a summary has no names"):
        Gram(D + 1).absorb(new, "price")


def set_value(column, row, value):
    values = column.to_pylist()
    values[row] = value
    return pa.array(values)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Row 651: column 'x2' is null"),
        (np.nan, "Row 651: column 'x2' has nan"),
        (np.inf, "Row 651: column 'x2' has inf"),
        (1e200, "Row 651: column 'x2' has the value 1e\\+200"),
    ],
)
@pytest.mark.parametrize("column", ["x2", "price"])
def test_a_bad_value_late_in_a_stream_leaves_everything_as_it_was(data, value, message, column, monkeypatch):
    monkeypatch.setattr("thresher._utils.arrow.MOST_ROWS", 256)
    X, y, _ = data
    table = arrow(X, y)
    bad = table.set_column(table.schema.get_field_index(column), column, set_value(table.column(column), 650, value))
    message = message.replace("x2", column)
    model = SparseRegressor().partial_fit(table, "price")
    before = model.coef_.copy()
    gram = Gram(D).absorb(table, "price")
    with pytest.raises(ValueError, match=message):
        model.partial_fit(Stream(bad), "price")
    assert model.n_samples_seen_ == N
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match=message):
        model.fit(Stream(bad), "price")
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match=message):
        gram.absorb(Stream(bad), "price")
    np.testing.assert_array_equal(gram.comoment(), Gram(D).absorb(X, y).comoment())
    fresh = SparseRegressor()
    with pytest.raises(ValueError, match=message):
        fresh.partial_fit(Stream(bad), "price")
    assert not hasattr(fresh, "summary_")
    model.partial_fit(table, "price")
    expected = SparseRegressor().partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_a_failure_leaves_the_lock_to_those_who_wait_for_it(data, monkeypatch):
    monkeypatch.setattr("thresher._utils.arrow.MOST_ROWS", 256)
    X, y, _ = data
    model = SparseRegressor().partial_fit(arrow(X, y), "price")
    lock = lock_of(model)
    X[650, 2] = np.nan
    with pytest.raises(ValueError, match="Row 651"):
        model.partial_fit(arrow(X, y), "price")
    assert lock_of(model) is lock


def test_all_rows_of_a_table_are_predicted_by_the_same_model(data):
    """Also if it learns more while they are read."""
    X, y, _ = data
    model, table = SparseRegressor(2).fit(arrow(X, y), "price"), arrow(X, y)
    expected = model.predict(X_frame := table.to_pandas())

    def batches():
        for batch in table.to_batches(97):
            yield batch
            model.partial_fit(X_frame.assign(price=-y), "price")

    result = model.predict(pa.RecordBatchReader.from_batches(table.schema, batches()))
    np.testing.assert_array_equal(result, expected)


def test_a_frame_is_predicted_by_name_after_fit_and_after_partial_fit(rng, data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=NAMES).assign(price=y, colour=pd.Categorical(rng.choice(["blue", "red"], N)))
    for learn in (SparseRegressor().fit, SparseRegressor().partial_fit, OnlineHardThresholding(2).partial_fit):
        model = learn(frame, "price")
        levels = pd.get_dummies(frame["colour"], dtype=float).to_numpy()
        expected = np.c_[X, levels] @ model.coef_ + model.intercept_
        np.testing.assert_allclose(model.predict(frame[frame.columns[::-1]]), expected, rtol=1e-12)


def test_normalised_weights_are_told_of(data):
    X, y, w = data
    for call in (SparseRegressor().fit, SparseRegressor().partial_fit):
        with pytest.warns(UserWarning, match=f"The weights of {N} rows sum to 1"):
            call(arrow(X, y, w / w.sum()), "price", "w")


def test_tables_that_do_not_fit_are_refused(data):
    X, y, w = data
    table = arrow(X, y, -w)
    for call in (SparseRegressor().fit, SparseRegressor().partial_fit, Gram(D).absorb):
        with pytest.raises(ValueError, match="no column 'cost'; it has 'x0'"):
            call(table, "cost")
        with pytest.raises(ValueError, match="Row 1: the weight in 'w' is negative"):
            call(table, "price", "w")
        with pytest.raises(ValueError, match="has no column 'colour=red'"):
            call(table, "price", features=["colour=red"])
        with pytest.raises(ValueError, match="'price' cannot be a feature"):
            call(table, "price", features=["price"])
        with pytest.raises(ValueError, match="'x0' is there twice"):
            call(table, "price", features=["x0", "x0"])
        with pytest.raises(TypeError, match="X is a ndarray"):
            call(X, "price")
        with pytest.raises(ValueError, match="no rows"):
            call(table.slice(0, 0), "price")
        with pytest.raises(ValueError, match="must be the name of a column"):
            call(table, "price", w)
        with pytest.raises(ValueError, match="go with an Arrow table"):
            call(X, y, features=["x0"])
        with pytest.raises(ValueError, match="'note' has values of type string"):
            call(table.append_column("note", pa.array(["a"] * N)), "price", features=["note"])
    with pytest.raises(ValueError, match="has 7 features; the summary has 5"):
        Gram(5).absorb(table, "price")
    model = SparseRegressor().fit(table.drop_columns(["w"]), "price")
    with pytest.raises(ValueError, match="no column 'x5'"):
        model.predict(table.drop_columns(["x5"]))


TOLD = r"columns 'note', 'day' are left out of the features, .*cast texts to a category .*features=\[\.\.\.\]"


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_columns_left_out_are_named_once(data, call, recwarn):
    X, y, _ = data
    day = pa.array(np.arange(N).astype("datetime64[D]"))
    table = arrow(X, y, note=["a", "b"] * (N // 2), day=day)
    with pytest.warns(UserWarning, match=TOLD) as told:
        model = getattr(SparseRegressor(), call)(table, "price")
    assert len(told) == 1
    assert list(model.feature_names_in_) == NAMES
    with pytest.warns(UserWarning, match=TOLD):
        Gram(D).absorb(table, "price")
    recwarn.clear()
    model.partial_fit(table, "price")  # the features are known by now
    model.predict(table)
    getattr(SparseRegressor(), call)(table, "price", features=NAMES)
    forgetting = SparseRegressor(half_life=timedelta(days=9))
    getattr(forgetting, call)(table.drop_columns(["note"]), "price", times="day")
    assert not recwarn.list


def test_texts_that_are_no_categories_are_told_the_remedy():
    table = pa.table({"area": ["north", "south"], "price": [1.0, 2.0]})
    with pytest.raises(ValueError, match="no columns of numbers or categories to be features; cast texts"):
        SparseRegressor().fit(table, "price")
    with pytest.raises(ValueError, match=r"'area' has values of type string.*features=\['area=LEVEL', ...\]"):
        SparseRegressor().fit(table, "price", features=["area"])


def test_the_index_of_a_pandas_frame_is_no_feature(data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(N)[::-1] * 7).assign(price=y)
    assert list(SparseRegressor().fit(frame, "price").feature_names_in_) == NAMES


def test_frames_given_with_arrays_still_go_the_way_of_scikit_learn(data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=NAMES)
    model = SparseRegressor().fit(frame.assign(price=y), "price")
    model.fit(frame, y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[NAMES[::-1]])


def test_a_model_of_a_table_is_saved_with_its_names(data, tmp_path):
    X, y, _ = data
    model = SparseRegressor().fit(arrow(X, y), "price")
    model.save(tmp_path / "m")
    again = thresher.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(arrow(X, y).to_pandas()), model.predict(arrow(X, y)))


MEMORY = """
import resource, sys
import numpy as np, pyarrow as pa
from thresher import Gram
batch = pa.record_batch({f"x{j}": np.random.default_rng(j).standard_normal(10_000) for j in range(20)})
schema, count = batch.schema, int(sys.argv[1])
gram = Gram(19).absorb(pa.RecordBatchReader.from_batches(schema, (batch for _ in range(count))), "x0")
assert gram.n_samples == 10_000 * count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_stream():
    few, many = (
        int(subprocess.run([sys.executable, "-c", MEMORY, n], capture_output=True, text=True, check=True).stdout)
        for n in ("10", "200")
    )
    assert many < few + 20_000  # kB; the stream has 320 MB


@pytest.mark.parametrize(
    ("missing", "extra", "code"),
    [
        ("pyarrow", "arrow", "from thresher import Gram; Gram(1).absorb(object(), 'y')"),
        ("duckdb", "duckdb", "import thresher; thresher.read_sql('SELECT 1')"),
        ("pyspark", "spark", "import thresher.integrations.spark"),
        ("dask", "dask", "import thresher.integrations.dask"),
        ("mlflow", "mlflow", "import thresher.integrations.mlflow"),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_installs_it(missing, extra, code):
    blocked = f"import sys; sys.modules[{missing!r}] = None; {code}"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"pip install 'thresher[{extra}]'" in done.stderr.splitlines()[-1]
