"""A model fed from a source: each row once, whatever happens in between, and however the rows come."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from thresher import Gram, OnlineHardThresholding, SparseRegressor
from thresher.io.checkpoint import CheckpointError, load, save
from thresher.io.encoding import encode
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Batch, Batches, Place
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import open_source
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.online.samples import Rows

N, D = 3000, 20
X, Y = SparseLinearStream(D, 4, signal=1.0, seed=8).draw(N)
NAMES = [f"x{j}" for j in range(D)]
COLUMNS = Columns("y", None, tuple(NAMES), {}, ())
WEIGHTS = np.random.default_rng(9).uniform(0.0, 2.0, N)


def batches(cuts, weights=None):
    """The rows, cut at these counts."""
    edges = [0, *cuts, N]
    for start, stop in pairwise(edges):
        part = None if weights is None else weights[start:stop]
        yield Batch(NAMES, X[start:stop].copy(), Y[start:stop].copy(), part, Place(stop, f"{stop}"), 0, 0, 0, None)


def state(ingest):
    return encode(
        ingest.learner, {name: value for name, value in vars(ingest).items() if name not in ("learner", "_names")}
    )


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["weights of one", "weighted"])
@pytest.mark.parametrize(
    "learner",
    [
        SparseRegressor(),
        SparseRegressor(3, fit_intercept=False),
        SparseRegressor(selection="cv"),
        OnlineHardThresholding(4, round_size=7, n_warmup=50),
        Gram(D),
    ],
    ids=repr,
)
def test_it_does_not_matter_how_rows_come(learner, weights, tmp_path):
    """Bit by bit: the model, the prequential error, everything; also when it is saved and loaded on the way."""
    found = []
    for cuts in ((), (1, 2, 99, 100, 101, 950, 1000, 2999), tuple(range(37, N, 37))):
        ingest = Ingest(learner.empty() if isinstance(learner, Gram) else clone(learner), COLUMNS, {"a": 1})
        for k, batch in enumerate(batches(cuts, weights)):
            ingest.absorb(batch)
            if k % 20 == 3:
                ingest.save(tmp_path / "m")
                ingest = Ingest.load(tmp_path / "m")
        ingest.finish()
        found.append(state(ingest))
    assert found[0] == found[1] == found[2]


def test_a_model_of_other_columns_is_refused():
    learner = SparseRegressor(4).fit(X[:500], Y[:500])
    with pytest.raises(ValueError, match="other columns"):
        Ingest(learner, COLUMNS)  # it was fitted without names
    learner.feature_names_in_ = np.array(NAMES, object)
    ingest = Ingest(learner, COLUMNS)
    ingest.absorb(next(batches((50,))))
    assert learner.n_samples_seen_ == 550


def test_the_end_is_what_fit_on_the_summary_gives():
    for sparsity in ("auto", 6):
        ingest = Ingest(SparseRegressor(sparsity), COLUMNS)
        for batch in batches((500,)):
            ingest.absorb(batch)
        ingest.finish()
        model = ingest.learner
        alone = SparseRegressor(sparsity).fit_summary(model.summary_)
        np.testing.assert_array_equal(model.support_, alone.support_)
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
        assert len(model.selection_history_) > len(alone.selection_history_)
        before = state(ingest)
        ingest.finish()
        assert state(ingest) == before
        assert ingest.finished


def test_a_batch_that_is_rejected_changes_nothing():
    for learner in (SparseRegressor(), OnlineHardThresholding(4), Gram(D)):
        ingest = Ingest(learner, COLUMNS)
        first, second = batches((700,))
        ingest.absorb(first)
        before = state(ingest)
        second.X[-1, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            ingest.absorb(second)
        assert state(ingest) == before


def test_a_batch_out_of_the_range_of_the_storage_changes_nothing():
    ingest = Ingest(SparseRegressor(dtype="float32"), COLUMNS)
    large = X[:300].copy()
    large[250, 3] = 1e20
    with pytest.raises(ValueError, match="overflow float32"):
        ingest.absorb(Batch(NAMES, large, Y[:300].copy(), None, Place(300, "300"), 0, 0, 0, None))
    assert not hasattr(ingest.learner, "summary_")
    assert ingest.place.n_rows == 0


def test_rows_with_names_are_rows_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    a = SparseRegressor().partial_fit(frame, Y)
    b = SparseRegressor()
    b._learn(Rows(X, Y), np.array(NAMES, object))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.feature_names_in_.tolist() == b.feature_names_in_.tolist() == NAMES
    b.partial_fit(frame, Y)
    assert b.n_samples_seen_ == 2 * N


def test_a_model_without_a_source_cannot_be_resumed(tmp_path):
    save(SparseRegressor().fit(X, Y), tmp_path / "m")
    with pytest.raises(CheckpointError, match="not made from a source"):
        Ingest.load(tmp_path / "m")


@pytest.mark.parametrize("model", [SparseRegressor(), OnlineHardThresholding(6, round_size=50)], ids=repr)
def test_python_and_the_file_agree(tmp_path, model):
    """What a file was read into is what partial_fit gives, and load gives it back."""
    path = tmp_path / "t.npz"
    np.savez(path, X=X, y=Y)
    source = open_source(str(path))
    ingest = Ingest(clone(model), Columns.choose(source, "y"))
    for batch in Batches(source, ingest.columns):
        ingest.absorb(batch)
    ingest.save(tmp_path / "m")
    plain = clone(model).partial_fit(X, Y)
    np.testing.assert_array_equal(load(tmp_path / "m").coef_, plain.coef_)
    ingest.finish()
    ingest.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").coef_, plain.finish().coef_)
    assert load(tmp_path / "m").intercept_ == plain.intercept_
