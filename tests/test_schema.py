"""What a class says of its fields is what a file may hold."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from thresher.io.schema import (
    Anything,
    Array,
    CheckpointError,
    Count,
    Dict,
    Flag,
    Is,
    Labels,
    List,
    Maybe,
    Number,
    Schema,
    Text,
    Tuple,
    check,
)
from thresher.summaries.gram import Gram

CHECKS = Path(__file__).parents[1] / "checks"


def fits(field, value, owned=True, **sizes):
    return field.fits(value, dict(sizes), lambda _: owned)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (Count(), [0, 3, np.int64(3)], [-1, 2**53, 2.0, True, None, "3"]),
        (Count(1, "n"), [1, 5], [0, 6]),
        (Count(below="n"), [0, 4], [5]),
        (Number(least=0.0), [0.0, 1e300, np.float32(1.0)], [-1.0, 1, np.nan, np.inf, None]),
        (Number(0.0, np.inf), [np.inf], [np.nan, -np.inf]),
        (Number(nan=True), [np.nan], [np.inf]),
        (Flag(), [True, np.bool_(False)], [0, None]),
        (Text("a", "b"), ["a"], ["c", 1]),
        (Count() | None, [None, 1], [1.0]),
        (Array("n"), [np.zeros(5)], [np.zeros(4), np.zeros((5, 1)), np.zeros(5, int), [0.0] * 5, np.full(5, np.nan)]),
        (Array("n", 2), [np.zeros((5, 2))], [np.zeros((5, 2), order="F"), np.zeros((2, 5)), np.zeros((5, 2), ">f8")]),
        (Array("k", dtype="i8", least=0, below="n"), [np.array([4, 0])], [np.array([5]), np.array([-1])]),
        (Array("k", dtype="i8", ascending=True), [np.array([1, 4]), np.array([], int)], [np.array([1, 1])]),
        (Array("k", nan=True), [np.array([1.0, np.nan])], [np.array([np.inf])]),
        (Labels("n"), [np.array(list("abcde"), object)], [np.array(list("abcd")), np.array([1] * 5, object)]),
        (List(Count()), [[1, 2]], [(1,), [1.0]]),
        (Tuple(Count(), Text()), [(1, "a")], [(1,), (1, "a", 2), ["a", 1]]),
        (Tuple(each=Text()), [(), ("a", "b")], [("a", 1)]),
        (Dict(Count(), ("a", "b")), [{"a": 1, "b": 2}], [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": "c"}]),
        (Dict(Count(), Text()), [{}, {"x": 1}], [{1: 1}]),
        (Is(Gram), [Gram(2)], [None, "Gram"]),
    ],
)
def test_fields(field, good, bad):
    for value in good:
        assert fits(field, value, n=5), value
    for value in bad:
        assert not fits(field, value, n=5), value


@pytest.mark.parametrize(
    ("field", "value"), [(Array("n"), np.zeros(2)), (Is(Gram), Gram(1)), (List(Count()), []), (Dict(Count(), ()), {})]
)
def test_what_others_refer_to_is_refused_unless_it_may_be_shared(field, value):
    assert fits(field, value)
    assert not fits(field, value, owned=False)


def test_shared_arrays_and_objects():
    assert fits(Array("n", shared=True), np.zeros(2), owned=False)
    assert fits(Is(Gram, shared=True), Gram(1), owned=False)


class Base:
    _schema = Schema(lambda one: one.n != 3, n=Count(), values=Array("d"))


class Derived(Base):
    _schema = Schema(more=Maybe(Array("d", "n")))


class Fitted:
    _parameter_constraints = {"size": []}  # noqa: RUF012
    _schema = Schema(lambda one: one.coef_.any(), coef_=Array("d"))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Base, {"n": 1}, "lacks 'values'"),
        (Base, {"n": 1, "values": np.zeros(2), "x": 1}, "has 'x'"),
        (Base, {"n": -1, "values": np.zeros(2)}, "'n'"),
        (Base, {"n": 3, "values": np.zeros(2)}, "do not fit together"),
        (Derived, {"n": 3, "values": np.zeros(2)}, "do not fit together"),
        (Derived, {"n": 1, "values": np.zeros(2), "more": np.zeros((3, 1))}, "'more'"),
        (Fitted, {}, "lacks 'size'"),
        (Fitted, {"size": 1, "other": 2}, "has 'other'"),
        (Fitted, {"size": 1, "coef_": np.zeros(2)}, "do not fit together"),
    ],
)
def test_objects_that_do_not_fit_their_description(kind, values, message):
    with pytest.raises(CheckpointError, match=message):
        check(kind, values, None, lambda _: True)


class Finite:
    _schema = Schema(lambda one: np.isfinite(one.values @ one.values), values=Array("d"))


def test_what_overflows_is_refused_without_a_warning():
    with warnings.catch_warnings(action="error"), pytest.raises(CheckpointError, match="do not fit together"):
        check(Finite, {"values": np.full(2, 1e300)}, None, lambda _: True)


def test_objects_that_fit_their_description():
    check(Base, {"n": 2, "values": np.zeros(2)}, None, lambda _: True)
    check(Derived, {"n": 2, "values": np.zeros(2), "more": np.zeros((2, 2))}, None, lambda _: True)
    check(Fitted, {"size": "anything"}, None, lambda _: True)  # not fitted: the parameter is checked by fit
    check(Fitted, {"size": 1, "coef_": np.ones(2)}, None, lambda _: True)
    assert fits(Anything(), object())


def test_forged_files_of_every_class():
    """A short run of the harness: a crash, a hang or a silent acceptance makes it fail."""
    subprocess.run([sys.executable, CHECKS / "forge_files.py", "--cases", "600", "--seed", "5"], check=True)
