"""Files of models and summaries: what comes back is what was kept, to the bit, or one typed error."""

import copy
import hashlib
import pickle
import pickletools
import struct
import warnings

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from thresher import (
    CrossValidation,
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    NoiseEdge,
    OnlineHardThresholding,
    ReducedRankRegressor,
    SparseRegressor,
)
from thresher.baselines import AdaptiveDantzig
from thresher.baselines import FTRLProximal as Ftrl
from thresher.io.checkpoint import CheckpointError, NewerFormatError, load, load_with_note, save
from thresher.io.encoding import decode, encode

N = 400
rng = np.random.default_rng(3)
X = rng.standard_normal((N, 12))
Y = X[:, 1] - X[:, 2] + rng.standard_normal(N)
IDS = np.array(["ann", "bob", "cleo", "dan"])[rng.integers(0, 4, N)], rng.integers(0, 5, N)

MODELS = {
    "default": (SparseRegressor(), (X, Y)),
    "a given size": (SparseRegressor(3, fit_intercept=False, dtype="float32"), (X, Y)),
    "groups": (SparseRegressor(groups=np.arange(12) // 3), (X, Y)),
    "cv": (SparseRegressor(selection=CrossValidation(3)), (X, Y)),
    "the paper's": (OnlineHardThresholding(3, step_size=0.1, n_warmup=20), (X, Y)),
    "the paper's, chosen": (OnlineHardThresholding(n_warmup=150), (X, Y)),
    "rounds of many rows": (
        OnlineHardThresholding(4, round_size=37, dtype="float32", fit_intercept=True, standardize=True),
        (X, Y),
    ),
    "rounds of groups": (OnlineHardThresholding(2, groups=np.arange(12) // 3), (X, Y)),
    "pursuit": (OnlineHardThresholding(3, rule="pursuit", fit_intercept=True), (X, Y)),
    "low rank": (LowRankRegressor(shape=(4, 3), selection=NoiseEdge()), (X, Y)),
    "responses": (ReducedRankRegressor(), (X, X[:, :3] + 0.1)),
    "responses by folds": (ReducedRankRegressor(selection="cv"), (X, X[:, :3] + 0.1)),
    "completion": (MatrixCompleter(offsets=True), (*IDS, Y)),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_goes_on_as_if_it_had_never_been_away(tmp_path, name):
    made, data = MODELS[name]
    model = type(made)(**made.get_params())
    model.partial_fit(*(part[: N // 2 + 7] for part in data))
    model.save(tmp_path / "m")
    twins = [load(tmp_path / "m"), pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)]
    for again in twins:
        assert type(again) is type(model)
        assert again.get_params().keys() == model.get_params().keys()
        assert encode(again) == encode(model)
    for one in (model, *twins):
        one.partial_fit(*(part[N // 2 + 7 :] for part in data))
    for again in twins:
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert encode(again) == encode(model)


def test_reading_a_model_does_not_change_its_file():
    """Least squares is computed when it is read, and not kept."""
    model = SparseRegressor().partial_fit(X[:207], Y[:207])
    before = encode(model)
    again = decode(before)[0]
    model.predict(X), model.coef_, model.intercept_, model.support_, model.diagnose(), model.confidence_intervals()
    assert encode(model) == before
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.intercept_ == model.intercept_
    assert not again.coef_.flags.writeable
    A = np.c_[np.ones(207), X[:207, model.support_]]
    np.testing.assert_allclose(again.coef_[model.support_], np.linalg.lstsq(A, Y[:207], rcond=None)[0][1:], rtol=1e-10)


def names_in_pickle(value):
    """Everything that unpickling looks up by name."""
    strings, found = [], []
    for opcode, argument, _ in pickletools.genops(pickle.dumps(value)):
        if opcode.name == "STACK_GLOBAL":
            found.append(".".join(strings[-2:]))
        if isinstance(argument, str):
            strings.append(argument)
    return found


@pytest.mark.parametrize("made", [Gram(2), MultiResponse(2, 1), Entries((2, 2)), SparseRegressor(), Ftrl(0.1, 0.2)])
def test_a_pickle_is_the_same_bytes(made):
    assert names_in_pickle(made) == ["thresher.io.checkpoint.from_bytes"]
    assert encode(made) in pickle.dumps(made)


class Mine(SparseRegressor):
    """A class from elsewhere."""


def shrinking(t, k):
    return 0.3 / (t + k)


@pytest.mark.parametrize(
    "made",
    [
        Mine(3),
        OnlineHardThresholding(3, step_size=shrinking),
        AdaptiveDantzig(2, random_state=np.random.RandomState(3)),
    ],
    ids=["a class from elsewhere", "a function", "a generator of another kind"],
)
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_what_cannot_be_encoded_is_pickled_all_the_same(made, twin):
    model = clone(made).partial_fit(X[:207], Y[:207])
    with pytest.raises(TypeError, match="cannot be saved"):
        encode(model)
    again = twin(model)
    assert type(again) is type(model)
    if twin is not copy.copy and hasattr(model, "summary_"):
        assert again.summary_ is not model.summary_
    if twin is not copy.copy and isinstance(model, OnlineHardThresholding):
        assert again._rounds.summary is again.summary_
    if twin is not copy.copy:  # that one shares what it learns from
        for one in (model, again):
            one.partial_fit(X[207:], Y[207:])
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_models_go_to_other_processes_and_come_back():
    model = SparseRegressor(3).partial_fit(X[:207], Y[:207])
    there = joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(model.partial_fit)(X[207 + k :], Y[207 + k :]) for k in range(2)
    )
    assert model.n_samples_seen_ == 207
    np.testing.assert_array_equal(there[0].coef_, model.partial_fit(X[207:], Y[207:]).coef_)
    assert joblib.hash(there[0]) == joblib.hash(model) != joblib.hash(there[1])


def test_parameters_and_ids_of_all_kinds_are_kept(tmp_path):
    SparseRegressor(3, dtype=np.float32).save(tmp_path / "m")
    assert load(tmp_path / "m").dtype is np.float32
    rows = ["ann", b"bob", np.str_("cleo"), 2**70]
    model = MatrixCompleter(1).partial_fit(rows * 4, np.repeat(np.arange(4), 4), np.arange(16.0))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(rows, [0, 1, 2, 3]), model.predict(rows, [0, 1, 2, 3]))


def test_a_generator_goes_on_with_the_same_numbers():
    generator = np.random.default_rng(5)
    generator.integers(0, 9, 3, dtype=np.uint32)  # half of a 64-bit number is left over
    again, _ = decode(encode(generator))
    np.testing.assert_array_equal(again.integers(0, 99, 9, np.uint32), generator.integers(0, 99, 9, np.uint32))
    np.testing.assert_array_equal(again.standard_normal(9), generator.standard_normal(9))
    with pytest.raises(TypeError, match="cannot be saved"):
        encode(np.random.Generator(np.random.MT19937(0)))


def test_texts_come_back_in_arrays_of_the_same_kind():
    arrays = [np.array(["a", "\u00f1\U0001d11e"]), np.array([b"ab"]), np.array(["x", 3, None, b"q", 0.5], object)]
    arrays += [np.array([], "U3"), np.array([["a"], ["bb"]], ">U2"), np.empty((0, 4)), np.arange(3, dtype=">i4")]
    for array, again in zip(arrays, decode(encode(arrays))[0], strict=True):
        assert again.dtype == array.dtype
        np.testing.assert_array_equal(again, array)
        assert again.shape == array.shape


def test_what_could_not_be_read_is_not_written():
    circle = ([],)
    circle[0].append(circle)
    deep = {((1,),): 2}
    for value in (circle, deep, {1j: 2}, np.array([[]], object).T.view(np.recarray), np.zeros(1, "M8[s]"), object()):
        with pytest.raises(TypeError, match="cannot be saved"):
            encode(value)


def test_summaries():
    gram = Gram(12).absorb(X, Y)
    joint = MultiResponse(12, 3).absorb(X, X[:, :3])
    entries = Entries((4, 5)).absorb(rng.integers(0, 4, N), IDS[1], Y)
    for summary in (gram, Gram(12, hold_rows=True).absorb(X[:2], Y[:2]), Gram(3, np.float32), joint, entries):
        again, note = decode(encode(summary))
        assert note is None
        assert encode(again) == encode(summary)
    np.testing.assert_array_equal(decode(encode(gram))[0].comoment(), gram.comoment())


def test_what_is_shared_stays_shared():
    array, names = np.arange(6.0).reshape(2, 3), np.array(["a", "b"], object)
    value = {"a": [array, array.T.copy(), np.asfortranarray(array)], "b": array, 3: (names, np.float32(0.1), 2**70)}
    again, _ = decode(encode(value))
    assert again["a"][0] is again["b"]
    assert again[3][2] == 2**70
    assert type(again[3][1]) is np.float32
    assert again[3][0].tolist() == ["a", "b"]
    assert again["a"][2].flags.f_contiguous
    np.testing.assert_array_equal(again["a"][2], array)
    for holder in ([], {}, ([],)):
        inner = holder[0] if type(holder) is tuple else holder
        inner.append(holder) if type(inner) is list else inner.update(a=holder)
        with pytest.raises(TypeError, match="holds itself"):
            encode(holder)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    )
)
def test_notes_come_back(note):
    found = decode(encode(None, note))[1]
    assert repr(found) == repr(note)  # also where there is no equality: nan


def small():
    return encode(Gram(2).absorb(X[:5, :2], Y[:5]), note="n")


def test_no_damage_goes_unnoticed():
    content = small()
    for i in range(len(content)):
        for piece in (content[:i], content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :]):
            with pytest.raises(CheckpointError):
                decode(piece)
    with pytest.raises(CheckpointError):
        decode(content + b"\0")


def test_a_newer_format_is_refused(tmp_path):
    content = bytearray(small())
    struct.pack_into("<I", content, 8, 7)
    body = bytes(content[:-32])
    (tmp_path / "m").write_bytes(body + hashlib.sha256(body).digest())
    (tmp_path / "m.1").write_bytes(small())
    with pytest.raises(NewerFormatError, match=r"m: it has format 7.*Update thresher"):
        load(tmp_path / "m")


def test_functions_are_refused_before_anything_is_written(tmp_path):
    model = OnlineHardThresholding(2, step_size=lambda t, k: 0.1).partial_fit(X, Y)
    with pytest.raises(TypeError, match="files hold data, not code"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_generations(tmp_path):
    path = tmp_path / "m"
    for number in range(5):
        save(Gram(2), path, note=number, generations=3)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m", "m.1", "m.2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_with_note(path)[1] == 4
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"m cannot be used.*going on from m\.1"):
        assert load_with_note(path)[1] == 3
    (tmp_path / "m.1").unlink()
    path.unlink()
    with pytest.warns(UserWarning, match=r"going on from m\.2"):
        assert load_with_note(path)[1] == 2
    (tmp_path / "m.2").unlink()
    with pytest.raises(FileNotFoundError):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"m: it is not a checkpoint"):
        load(path)
