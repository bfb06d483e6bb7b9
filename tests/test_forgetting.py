"""Summaries whose rows count less as they age, against sums by definition over the rows with their weights."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher import Entries, Gram, MultiResponse
from thresher._utils import memory
from thresher.io.encoding import decode, encode

halves = st.floats(0.3, 3000.0)


def rows(seed, n, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(2 * rng.normal(size=d)) + 5.0 * rng.standard_normal(d)
    return X, rng.standard_normal(n) + X[:, 0], rng.integers(0, 4, n).astype(float)


def factors(ages, half_life):
    return 2.0 ** (-np.asarray(ages) / half_life)


def check(gram, X, y, f, w=None):
    """Everything that is read of a Gram is that of rows with factors f that were there w times."""
    w = np.ones(len(y)) if w is None else w
    if not (w * f).sum() > 0:
        return
    a = w * f / (w * f).sum()
    mean, mean_y = a @ X, a @ y
    C, v = X - mean, y - mean_y
    n = (w @ f) ** 2 / (w @ f**2)
    scale = np.abs(C).max(axis=0) + 1e-3 * np.abs(X).max(axis=0)
    np.testing.assert_allclose(gram.weight, n, rtol=1e-9)
    np.testing.assert_allclose(gram.mean_x, mean, rtol=1e-9, atol=1e-9 * scale.max())
    np.testing.assert_allclose(gram.mean_y, mean_y, rtol=1e-9, atol=1e-9)
    covariance = (C.T * a) @ C
    np.testing.assert_allclose(
        gram.comoment() / n / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=1e-9
    )
    np.testing.assert_allclose(gram.second_moment() / n, (X.T * a) @ X, rtol=1e-9, atol=1e-9 * scale.max() ** 2)
    cross = C.T @ (a * v)
    np.testing.assert_allclose(gram.cross_comoment() / n / scale, cross / scale, atol=1e-9 * np.abs(y).max())
    np.testing.assert_allclose(gram.response_variance(), a @ v**2, rtol=1e-9, atol=1e-9 * np.max(y**2))
    coef = np.array([1.0, -0.5, 0.25, 0.0])
    loss = a @ (y - X @ coef - 2.0) ** 2 / 2
    np.testing.assert_allclose(gram.loss(coef, 2.0), loss, rtol=1e-9)
    gradient = -(X.T * a) @ (y - X @ coef - 2.0)
    np.testing.assert_allclose(gram.gradient(coef, 2.0), gradient, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())
    for centred in (True, False):
        moments = gram.moments(centred)
        full = n * (covariance if centred else (X.T * a) @ X)
        sizes = np.sqrt(n) * (scale if centred else np.abs(X).max(axis=0))
        for j in range(4):
            np.testing.assert_allclose(moments.column(j) / sizes / sizes[j], full[j] / sizes / sizes[j], atol=1e-9)
        matrix, vector = gram.normal_equations([2, 0], centred)
        size = sizes[[2, 0]]
        np.testing.assert_allclose(
            matrix / np.outer(size, size), full[np.ix_([2, 0], [2, 0])] / np.outer(size, size), atol=1e-9
        )
        cross = n * (X - centred * mean).T @ (a * (y - centred * mean_y))
        np.testing.assert_allclose(vector / size, cross[[2, 0]] / size, atol=1e-9 * np.sqrt(n) * np.abs(y).max())
        assert moments.weight == gram.weight


def in_calls(gram, X, y, w, times, cuts):
    for part in np.split(np.arange(len(y)), sorted(cut % (len(y) + 1) for cut in cuts)):
        if len(part):
            gram.absorb(X[part], y[part], None if w is None else w[part], times=None if times is None else times[part])
    return gram


@given(st.integers(0, 99), st.integers(1, 700), halves, st.lists(st.integers(0, 700), max_size=4), st.booleans())
def test_half_life_in_rows_equals_weights_by_age(seed, n, half_life, cuts, weighted):
    X, y, w = rows(seed, n)
    w = w if weighted else None
    gram = in_calls(Gram(4, half_life=half_life), X, y, w, None, cuts)
    check(gram, X, y, factors(np.arange(n)[::-1], half_life), w)
    whole = Gram(4, half_life=half_life).absorb(X, y, w)
    assert encode(whole) == encode(gram)  # to the bit


@given(
    st.integers(0, 99),
    st.integers(1, 400),
    st.sampled_from([0.01, 3.0, 1e4]),
    st.sampled_from([1e-3, 1.0, 60.0]),
    st.sampled_from([0.0, 1.7e9, -1e6]),
    st.lists(st.integers(0, 400), max_size=4),
)
def test_half_life_in_seconds_equals_weights_by_age(seed, n, half_life, gap, start, cuts):
    X, y, _ = rows(seed, n)
    rng = np.random.default_rng(seed)
    times = start + np.cumsum(gap * rng.exponential(size=n) * rng.integers(0, 2, n))
    gram = in_calls(Gram(4, half_life=half_life), X, y, None, times, cuts)
    check(gram, X, y, factors(times[-1] - times, half_life))
    assert encode(Gram(4, half_life=half_life).absorb(X, y, times=times)) == encode(gram)


@given(st.integers(0, 99), st.integers(1, 300), st.integers(1, 300), halves, st.booleans())
def test_merged_parts_age_by_time_or_each_by_its_rows(seed, n, m, half_life, timed):
    X, y, w = rows(seed, n + m + 40)
    rng = np.random.default_rng(seed)
    times = np.concatenate(
        [np.sort(rng.uniform(0, 500, size)) for size in (n, m)] + [np.sort(rng.uniform(500, 600, 40))]
    )
    parts = np.split(np.arange(n + m + 40), [n, n + m])
    grams = [
        Gram(4, half_life=half_life).absorb(X[part], y[part], w[part], times=times[part] if timed else None)
        for part in parts[:2]
    ]
    merged = grams[0].merge(grams[1])
    both = np.concatenate(parts[:2])
    last = max(times[n - 1], times[n + m - 1])
    ages = last - times[both] if timed else np.concatenate([np.arange(n)[::-1], np.arange(m)[::-1]])
    assert merged.n_samples == n + m
    check(merged, X[both], y[both], factors(ages, half_life), w[both])
    check(grams[1].merge(grams[0]), X[both], y[both], factors(ages, half_life), w[both])
    # It goes on, and all rows age together.
    later = parts[2]
    merged.absorb(X[later], y[later], w[later], times=times[later] if timed else None)
    ages = times[-1] - times if timed else np.concatenate([ages + 40, np.arange(40)[::-1]])
    check(merged, X, y, factors(ages, half_life), w)


@given(st.integers(0, 99), st.integers(1, 300), st.integers(1, 300), st.floats(0.001, 1.0), st.booleans())
def test_scaled_parts_merge_with_their_factors(seed, n, m, factor, weighted):
    X, y, w = rows(seed, n + m)
    w = w if weighted else np.ones(n + m)
    old, new = Gram(4).absorb(X[:n], y[:n], w[:n]), Gram(4).absorb(X[n:], y[n:], w[n:])
    f = np.repeat([factor, 1.0], [n, m])
    check(old.scaled(factor).merge(new), X, y, f, w)
    check(new.merge(old.scaled(factor)), X, y, f, w)
    check(old.scaled(factor).absorb(X[n:], y[n:], w[n:]), X, y, f, w)
    check(old.scaled(factor), X[:n], y[:n], np.ones(n), w[:n])  # alone, it is what it was
    check(old.scaled(factor).merge(new).scaled(factor), X, y, f, w)
    check(old, X[:n], y[:n], np.ones(n), w[:n])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [7, 128, 500])
def test_other_ways_to_read_a_summary_that_forgets(n, dtype):
    X, y, w = rows(3, n)
    f = factors(np.arange(n)[::-1], 40.0)
    gram = Gram(4, dtype, half_life=40.0).absorb(X, y, w)
    assert gram.half_life == 40.0
    assert gram.forgets
    plain = gram.plain()
    assert plain.half_life is None
    assert not plain.forgets
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for other in (plain, gram.copy(), gram.select([0, 1, 2, 3]), gram.copy().grown(6).select([0, 1, 2, 3])):
        np.testing.assert_allclose(other.weight, gram.weight, rtol=1e-13)
        np.testing.assert_allclose(other.comoment(), gram.comoment(), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(other.cross_comoment(), gram.cross_comoment(), rtol=1e-12)
    # A selection still forgets, and so does what is left of it empty.
    chosen = gram.select([3, 1]).absorb(X[:7][:, [3, 1]], y[:7])
    direct = Gram(2, dtype, half_life=40.0).absorb(
        np.vstack([X, X[:7]])[:, [3, 1]], np.append(y, y[:7]), np.append(w, np.ones(7))
    )
    np.testing.assert_allclose(chosen.comoment(), direct.comoment(), rtol=tolerance)
    assert gram.empty().half_life == 40.0
    assert gram.empty().weight == 0.0
    if dtype == np.float64:
        check(gram, X, y, f, w)


def test_long_buffers_forget_too():
    X, y, _ = rows(1, 900, 300)
    held, folded = Gram(300, hold_rows=True, half_life=70.0), Gram(300, half_life=70.0)
    for part in np.array_split(np.arange(900), 7):
        held.absorb(X[part], y[part])
        folded.absorb(X[part], y[part])
        np.testing.assert_allclose(
            held.comoment(), folded.comoment(), rtol=1e-9, atol=1e-9 * np.abs(folded.comoment()).max()
        )


def test_what_is_long_forgotten_leaves_nothing():
    X, y, _ = rows(2, 300)
    gram = (
        Gram(4, half_life=1.0)
        .absorb(1e6 * X, 1e6 * y, times=np.arange(300.0))
        .absorb(X, y, times=1e7 + np.arange(300.0))
    )
    check(gram, X, y, factors(np.arange(300)[::-1], 1.0))


@pytest.mark.parametrize(
    "times",
    [
        [datetime(2026, 1, 1) + timedelta(minutes=k) for k in range(5)],
        np.datetime64("2026-01-01") + np.arange(5) * np.timedelta64(60, "s"),
        np.arange("2026-01-01T00:00", "2026-01-01T00:05", dtype="M8[m]"),
        60 * np.arange(5),
    ],
)
@pytest.mark.parametrize("half_life", [120, 120.0, timedelta(minutes=2), np.timedelta64(2, "m")])
def test_times_and_durations_of_every_kind(times, half_life):
    X, y, _ = rows(4, 5)
    check(Gram(4, half_life=half_life).absorb(X, y, times=times), X, y, factors(60.0 * np.arange(5)[::-1], 120.0))


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (timedelta(hours=1), 3600.0),
        (np.timedelta64(1, "h"), 3600.0),
        (np.timedelta64(3, "W"), 3 * 604800.0),
        (np.timedelta64(1500, "ns"), 1.5e-6),
        (pd.Timedelta("90s"), 90.0),
        (pd.Timedelta(1500, "ns"), 1.5e-6),
        (np.timedelta64(2**62, "ns"), 2.0**62 / 1e9),
    ],
)
def test_durations_of_python_numpy_and_pandas(duration, seconds):
    for gram in (Gram(2, half_life=duration), MultiResponse(2, 1, half_life=duration)):
        assert gram.half_life == seconds
    for gram in (Gram(2, window=duration), MultiResponse(2, 1, window=duration)):
        assert gram.window == seconds
        with pytest.raises(ValueError, match="give times="):
            gram.absorb(np.ones((1, 2)), np.ones(1) if isinstance(gram, Gram) else np.ones((1, 1)))
    with pytest.raises(ValueError, match="times"):
        Gram(2, half_life=duration).absorb(np.ones((1, 2)), np.ones(1))


NO_DURATIONS = [np.timedelta64(1, "Y"), np.timedelta64(1, "M"), np.timedelta64(5), np.timedelta64("NaT", "s")]
NO_DURATIONS += [np.timedelta64(-1, "h"), np.timedelta64(3, "as"), np.timedelta64(2**62, "s"), pd.NaT]
NO_DURATIONS += [pd.Timedelta(0)]


@pytest.mark.parametrize(
    "half_life", [0, -1.0, np.nan, np.inf, 1e16, "1d", True, timedelta(0), timedelta(days=-1), *NO_DURATIONS]
)
def test_half_lives_that_are_none(half_life):
    with pytest.raises(ValueError, match="half_life must be"):
        Gram(2, half_life=half_life)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, 1.5, np.inf, 1e-200, True, "1"])
def test_factors_that_are_none(factor):
    with pytest.raises(ValueError, match="factor must be between 1e-100 and 1"):
        Gram(2).scaled(factor)


READ = (
    lambda gram: gram.weight,
    lambda gram: gram.mean_x,
    lambda gram: gram.variance(),
    lambda gram: gram.comoment(),
    lambda gram: gram.second_moment(),
    lambda gram: gram.cross_comoment(),
    lambda gram: gram.loss([1.0, -0.5, 0.25, 0.0]),
    lambda gram: gram.moments().column(1),
    lambda gram: gram.horizon,
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [7, 300])
@pytest.mark.parametrize("memory", [{}, {"half_life": 50.0}, {"window": 100}])
def test_scaling_changes_nothing_that_is_read_of_the_rows_alone(dtype, n, memory):
    X, y, w = rows(5, n)
    for size in (1.0, 1e-12):
        gram = Gram(4, dtype, **memory).absorb(size * X, size * y, w)
        others = [gram.scaled(factor) for factor in (0.3, 1e-60, 1e-100)]
        others += [others[1].scaled(1e-60), decode(encode(others[1]))[0], others[1].merge(others[1].empty())]
        others += [others[1].copy().grown(5).select(range(4))] if dtype == np.float64 else []
        for other in others:
            for read in READ:
                np.testing.assert_allclose(read(other), read(gram), rtol=1e-5, atol=1e-6 * np.abs(read(gram)).max())
        np.testing.assert_array_equal(others[0].comoment(), others[1].comoment())


def test_parts_that_were_scaled_alike_merge_as_if_they_were_not():
    X, y, w = rows(6, 400)
    for dtype in (np.float64, np.float32):
        one, other = Gram(4, dtype).absorb(X[:150], y[:150], w[:150]), Gram(4, dtype).absorb(X[150:], y[150:], w[150:])
        small = one.scaled(1e-90).merge(other.scaled(1e-90))
        np.testing.assert_allclose(small.comoment(), one.merge(other).comoment(), rtol=1e-5)
        small = one.scaled(1e-90).merge(other.scaled(0.5e-90))
        np.testing.assert_allclose(small.comoment(), one.merge(other.scaled(0.5)).comoment(), rtol=1e-5)
        # Beside rows that count fully, they are nothing.
        np.testing.assert_allclose(one.scaled(1e-90).merge(other).comoment(), other.comoment(), rtol=1e-5)


def test_factors_whose_product_would_vanish_are_refused():
    X, y, _ = rows(6, 300)
    multi = MultiResponse(4, 1).absorb(X, y[:, None])
    entries = Entries((2, 2)).absorb([0, 1], [0, 1], [1.0, 2.0])
    for summary in (Gram(4).absorb(X, y), multi, entries):
        once = summary.scaled(1e-100)
        np.testing.assert_allclose(once.weight, summary.weight, rtol=1e-12)
        with pytest.raises(ValueError, match=r"factor=1e-100 leaves rows with so little weight"):
            once.scaled(1e-100)
    gram = Gram(4).absorb(X, y).scaled(0.5)
    for value in (0.0, 2.0, -1.0, np.nan, 1e-200):
        gram.state.decay.pending = value
        with pytest.raises(ValueError, match="Decay"):
            encode(gram)


def test_what_times_must_be():
    X, y, _ = rows(5, 3)
    gram = Gram(4, half_life=5.0).absorb(X, y, times=[10.0, 10.0, 11.0])
    before = encode(gram)
    for times, message in [
        (None, "Ages are in seconds"),
        ([12.0, 11.5, 13.0], "times goes back at row 1, from 12 to 11.5"),
        ([10.5, 12.0, 13.0], "times goes back, from 11 in an earlier call to 10.5"),
        ([12.0, np.nan, 13.0], "times contains NaN"),
        ([12.0, 13.0], r"times has shape \(2,\); expected \(3,\)"),
        (["a", "b", "c"], "times has dtype"),
        ([1.7e18, 1.7e18, 1.7e18], "times holds values up to 1.7e.18; give seconds"),
        (np.array(["2026-01-01", "NaT", "2026-01-02"], "M8[s]"), "times contains NaT"),
    ]:
        with pytest.raises(ValueError, match=message):
            gram.absorb(X, y, times=times)
    assert encode(gram) == before
    with pytest.raises(ValueError, match="times go with half_life or window"):
        Gram(4).absorb(X, y, times=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Earlier rows had no times"):
        Gram(4, half_life=5.0).absorb(X, y).absorb(X, y, times=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="give times="):
        Gram(4, half_life=timedelta(days=1)).absorb(X, y)


BERLIN, MINUTES = timezone(timedelta(hours=1)), [timedelta(minutes=k) for k in range(3)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "times",
    [
        np.array([0, 60, 120], object),
        np.array([0.0, 60, Decimal("120.0")], object),
        [Decimal(0), Fraction(60), np.float32(120.0)],
        [datetime(1970, 1, 1, 1, tzinfo=BERLIN) + step for step in MINUTES],
        [datetime(1970, 1, 1, 1, tzinfo=BERLIN), datetime(1970, 1, 1, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 2)],
        pd.date_range("1970-01-01 01:00", periods=3, freq="min", tz="Europe/Berlin"),
        pd.Series(pd.date_range("1970-01-01", periods=3, freq="min", tz="UTC")),
        np.array(["1970-01-01T00:00Z", "1970-01-01T01:01+01:00", "1970-01-01T00:02"], object),
    ],
)
def test_times_as_objects_and_with_time_zones(times):
    """Numbers are seconds; aware times are converted to UTC, without a warning."""
    X, y, _ = rows(4, 3)
    gram = Gram(4, half_life=90.0).absorb(X, y, times=times)
    check(gram, X, y, factors([120.0, 60.0, 0.0], 90.0))
    assert gram.last_time == 120.0
    gram = Gram(4, half_life=90.0).absorb(X, y, times=pd.Series(times, dtype=object))
    assert gram.last_time == 120.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1, None, 3], "times has None in row 1, which is no time; give numbers of seconds, or dates and times"),
        ([1, datetime(2026, 1, 1), 3], "times has both numbers and dates; give seconds in all rows"),
        ([1, True, 3], "times has True in row 1"),
        ([10**400] * 3, "times has 1000"),
        ([Decimal("sNaN")] * 3, "times has Decimal"),
        ([timedelta(1)] * 3, "times has datetime.timedelta"),
        ([np.timedelta64(1, "s")] * 3, "times has np.timedelta64"),
        ([pd.Period("2026-01")] * 3, "times has Period"),
        (["at noon"] * 3, "times has 'at noon' in row 0"),
        ([datetime(1, 1, 1, tzinfo=BERLIN)] * 3, "times has datetime"),
        ([pd.NaT, pd.Timestamp("2026-01-01"), pd.NaT], "times contains NaT .first at row 0"),
        ([float("nan")] * 3, "times contains NaN"),
    ],
)
def test_objects_that_are_no_times(times, message):
    X, y, _ = rows(4, 3)
    with pytest.raises(ValueError, match=message):
        Gram(4, half_life=90.0).absorb(X, y, times=np.array(times, object))


def test_what_cannot_be_combined():
    X, y, _ = rows(6, 20)
    plain, aged = Gram(4).absorb(X, y), Gram(4, half_life=5.0).absorb(X, y)
    timed = Gram(4, half_life=5.0).absorb(X, y, times=np.arange(20.0))
    for one, other in [(plain, aged), (aged, Gram(4, half_life=6.0).absorb(X, y))]:
        with pytest.raises(ValueError, match="different half_life"):
            one.merge(other)
    with pytest.raises(ValueError, match="whose rows have times with one whose rows have none"):
        aged.merge(timed)
    check(aged.merge(Gram(4, half_life=5.0)), X, y, factors(np.arange(20)[::-1], 5.0))
    check(Gram(4, half_life=5.0).merge(timed), X, y, factors(np.arange(20)[::-1], 5.0))
    for one, other in [(aged, aged), (plain.scaled(0.5), plain), (plain, plain.scaled(0.5))]:
        with pytest.raises(ValueError, match="Cannot subtract: rows that were scaled, or that count less as they age"):
            one.subtract(other)


def test_an_empty_summary_that_needs_times_merges_with_none_but_such():
    X, y, _ = rows(6, 20)
    empty, either = Gram(4, half_life=timedelta(seconds=5)), Gram(4, half_life=5.0)
    counted, timed = either.copy().absorb(X, y), either.copy().absorb(X, y, times=np.arange(20.0))
    for one, other in [(empty, counted), (counted, empty), (empty.merge(either), counted), (timed.empty(), counted)]:
        with pytest.raises(ValueError, match="whose rows have times with one whose rows have none"):
            one.merge(other)
    with pytest.raises(ValueError, match="whose rows have times"):
        MultiResponse(3, 1, half_life=timedelta(seconds=5)).merge(
            MultiResponse(3, 1, half_life=5.0).absorb(X[:, :3], y[:, None])
        )
    for merged in (empty.merge(either), either.merge(empty), empty.merge(timed), timed.merge(empty)):
        with pytest.raises(ValueError, match="give times="):
            merged.absorb(X, y)
    check(empty.merge(timed), X, y, factors(np.arange(20)[::-1], 5.0))
    check(either.merge(either).absorb(X, y), X, y, factors(np.arange(20)[::-1], 5.0))


# -- how many rows count, whatever their weights -----------------------------------------------------------


def effective(f):
    return f.sum() ** 2 / (f @ f)


@given(
    st.integers(1, 700),
    st.sampled_from([{"half_life": 0.7}, {"half_life": 60.0}, {"window": 77}, {"window": 77, "exact_window": True}]),
    st.sampled_from([1e-3, 1.0, 1e3, "zeros too"]),
    st.booleans(),
    st.lists(st.integers(0, 700), max_size=3),
)
def test_the_horizon_is_a_number_of_rows(n, memory, c, timed, cuts):
    X, y, w = rows(1, n)
    w = w if c == "zeros too" else np.full(n, c)
    times = np.cumsum(np.random.default_rng(n).exponential(size=n)) if timed else None
    gram = in_calls(Gram(4, **memory), X, y, w, times, cuts)
    clock = np.arange(n) if times is None else times
    if "half_life" in memory:
        expected = effective(factors(clock[-1] - clock, memory["half_life"]))
    elif memory.get("exact_window"):
        expected = (clock > clock[-1] - 77).sum()
    else:
        expected = Gram(4, **memory).absorb(X, y, times=times).weight
    assert max(expected - 1.001, 1) <= gram.horizon <= expected + 0.001
    again = decode(encode(gram))[0]
    assert again.horizon == gram.horizon == Gram(4, **memory).absorb(X, y, times=times).horizon
    assert gram.copy().grown(9).horizon == gram.horizon
    assert "window" in memory or gram.select([1, 0]).horizon == gram.horizon


def test_the_horizon_of_merged_and_scaled_rows():
    X, y, _ = rows(2, 500)
    for c in (1e-3, 1.0, 1e3):
        w = np.full(500, c)
        parts = [
            Gram(4, half_life=60.0).absorb(X[part], y[part], w[part]) for part in (slice(0, 200), slice(200, None))
        ]
        f = factors(np.concatenate([np.arange(200)[::-1], np.arange(300)[::-1]]), 60.0)
        assert parts[0].merge(parts[1]).horizon == int(effective(f))
        assert parts[0].scaled(0.25).horizon == parts[0].horizon
        f[:200] *= 0.25
        assert parts[0].scaled(0.25).merge(parts[1]).horizon == int(effective(f))
        one, other = Gram(4).absorb(X[:200], y[:200], w[:200]), Gram(4).absorb(X[200:], y[200:], w[200:])
        assert one.scaled(0.1).horizon == 200
        f = np.repeat([0.1, 1.0], [200, 300])
        assert one.scaled(0.1).merge(other).horizon == int(effective(f))
        assert one.scaled(0.1).absorb(X[200:], y[200:], w[200:]).horizon == int(effective(f))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sum_factors", -1.0),
        ("sum_factors", np.nan),
        ("sum_factors", 1e300),
        ("sum_factors", 150.0),
        ("sum_factors_squared", -1.0),
        ("sum_factors_squared", 150.0),
        ("sum_factors_squared", np.inf),
    ],
)
def test_sums_of_factors_that_no_rows_left_are_refused(name, value):
    gram = Gram(3, half_life=50.0).absorb(np.ones((140, 3)), np.ones(140))
    setattr(gram.state.decay, name, value)
    with pytest.raises(ValueError, match=r"Decay|State"):
        encode(gram)


# -- windows -----------------------------------------------------------------------------------------------


@given(
    st.integers(0, 99),
    st.integers(1, 700),
    st.integers(1, 500),
    st.lists(st.integers(0, 700), max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_a_window_of_rows_is_the_summary_of_the_last_ones(seed, n, length, cuts, exact, weighted):
    X, y, w = rows(seed, n)
    X[n // 2 :] += 1e3
    w = w if weighted else None
    gram = in_calls(Gram(4, window=length, exact_window=exact), X, y, w, None, cuts)
    counted = Gram(4, window=length, exact_window=exact).absorb(X, y)
    m = int(counted.weight)
    assert m == counted.weight
    assert min(n, length) <= m <= (min(n, length) if exact else length + length // 10)
    check(gram, X[-m:], y[-m:], np.ones(m), None if w is None else w[-m:])
    assert gram.n_samples == n
    whole = Gram(4, window=length, exact_window=exact).absorb(X, y, w)
    assert encode(whole) == encode(gram)  # to the bit
    check(gram.plain(), X[-m:], y[-m:], np.ones(m), None if w is None else w[-m:])
    if w is None:
        np.testing.assert_allclose(gram.select([0, 3]).comoment(), gram.comoment()[::3, ::3], rtol=1e-12, atol=1e-7)


@pytest.mark.parametrize("length", [*range(1, 46), 99, 100, 101, 109, 128, 1002])
def test_windows_of_every_length_hold_their_rows_and_a_tenth_more(length):
    """After each row: at least w rows, at most w + w // 10, and they are the last ones."""
    n = 3 * length + 30
    x = np.random.default_rng(length).standard_normal((n, 1))
    gram, sizes = Gram(1, window=length), []
    for i in range(n):
        gram.absorb(x[i : i + 1], 2.0 * x[i])
        m = round(gram.weight)
        sizes.append(m)
        np.testing.assert_allclose(gram.mean_x, x[i + 1 - m : i + 1].mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(gram.second_moment(), x[i + 1 - m : i + 1].T @ x[i + 1 - m : i + 1], rtol=1e-9)
    assert sizes[:length] == list(range(1, length + 1))
    assert min(sizes[length:]) >= length
    assert max(sizes) == length + length // 10


@given(
    st.integers(0, 99),
    st.integers(1, 400),
    st.sampled_from([0.5, 20.0, 1e4]),
    st.sampled_from([1e-2, 1.0, 60.0]),
    st.sampled_from([0.0, 1.7e9, -1e6]),
    st.lists(st.integers(0, 400), max_size=4),
    st.booleans(),
)
def test_a_window_of_time_is_the_summary_of_the_last_span(seed, n, length, gap, start, cuts, exact):
    X, y, _ = rows(seed, n)
    rng = np.random.default_rng(seed)
    times = start + np.cumsum(gap * rng.exponential(size=n) * rng.integers(0, 2, n))
    gram = in_calls(Gram(4, window=length, exact_window=exact), X, y, None, times, cuts)
    least = int((times > times[-1] - length).sum())
    most = least if exact else int((times > times[-1] - 1.1 * length - 1e-6).sum())
    m = round(gram.weight)
    assert least <= m <= most
    check(gram, X[-m:], y[-m:], np.ones(m))
    assert encode(Gram(4, window=length, exact_window=exact).absorb(X, y, times=times)) == encode(gram)
    assert gram.last_time == times[-1]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_windows_are_copied_saved_and_grown_in_the_middle(exact, timed):
    X, y, _ = rows(7, 900)
    X[:, 3] = 0.0
    times = np.arange(900.0) if timed else None
    whole = Gram(4, window=350, exact_window=exact).absorb(X, y, times=times)
    for cut in (1, 127, 350, 611):
        part = Gram(4, window=350, exact_window=exact).absorb(
            X[:cut], y[:cut], times=None if times is None else times[:cut]
        )
        narrow = Gram(3, window=350, exact_window=exact).absorb(
            X[:cut, :3], y[:cut], times=None if times is None else times[:cut]
        )
        again = decode(encode(part))[0]
        for other in (again, part.copy(), narrow.grown(4)):
            other.absorb(X[cut:], y[cut:], times=None if times is None else times[cut:])
            assert other.weight == whole.weight
            np.testing.assert_array_equal(other.comoment(), whole.comoment())
        assert encode(again) == encode(whole)
        take_back = part.undoing(300)
        part.absorb(X[cut : cut + 200], y[cut : cut + 200], times=None if times is None else times[cut : cut + 200])
        take_back()
        part.absorb(X[cut:], y[cut:], times=None if times is None else times[cut:])
        assert encode(part) == encode(whole)
    empty = whole.empty()
    assert (empty.window, empty.exact_window, empty.weight) == (350.0, exact, 0.0)
    assert encode(empty.absorb(X, y, times=times)) == encode(whole)


def test_windows_keep_their_accuracy_after_huge_rows():
    X, y, _ = rows(9, 1200)
    for exact in (False, True):
        gram = Gram(4, window=200, exact_window=exact).absorb(1e12 * X[:600], y[:600]).absorb(X[600:], y[600:])
        m = int(gram.weight)
        check(gram, X[-m:], y[-m:], np.ones(m))
        far = Gram(4, window=200, exact_window=exact).absorb(X, y).absorb(X + 1e8, y)
        m = int(far.weight)
        C = X[-m:] - X[-m:].mean(axis=0)
        np.testing.assert_allclose(far.comoment(), C.T @ C, atol=1e-6 * np.abs(C.T @ C).max())


def test_windows_of_many_responses():
    X, y, _ = rows(3, 500)
    Y = np.column_stack([y, X[:, 1] - y])
    for exact in (False, True):
        summary = MultiResponse(4, 2, window=120, exact_window=exact).absorb(X, Y)
        gram = Gram(6, window=120, exact_window=exact).absorb(np.hstack([X, Y]), np.zeros(500))
        np.testing.assert_array_equal(summary.joint_moments(), gram.comoment())
        assert (summary.window, summary.exact_window, summary.forgets) == (120.0, exact, True)
        m = int(summary.weight)
        coef = np.arange(8.0).reshape(4, 2) - 3.0
        left = Y[-m:] - X[-m:] @ coef - 1.0
        np.testing.assert_allclose(summary.loss(coef, 1.0), (left**2).sum() / (2 * m), rtol=1e-9)


@pytest.mark.parametrize("window", [0, -1, np.nan, np.inf, 1e16, "1d", True, timedelta(0)])
def test_windows_that_are_none(window):
    with pytest.raises(ValueError, match="window must be"):
        Gram(2, window=window)


def test_what_windows_refuse(monkeypatch):
    X, y, _ = rows(5, 3)
    with pytest.raises(ValueError, match=r"half_life=5 or leave by window=6; give one of them"):
        Gram(4, half_life=5, window=6)
    with pytest.raises(ValueError, match=r"window=2.5 is no whole number of rows"):
        Gram(4, window=2.5).absorb(X, y)
    with pytest.raises(ValueError, match="give times="):
        Gram(4, window=timedelta(days=1)).absorb(X, y)
    gram = Gram(4, window=2).absorb(X, y)
    with pytest.raises(ValueError, match="Earlier rows had no times"):
        gram.absorb(X, y, times=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Cannot subtract"):
        gram.subtract(gram)
    with pytest.raises(ValueError, match="Cannot merge windows"):
        gram.merge(gram)
    assert gram.plain().merge(gram.plain()).weight == 2 * gram.weight
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**7)
    with pytest.raises(
        MemoryError, match=r"A window of 1,000 features, which holds 14 summaries in float64, needs 112,000,000"
    ):
        Gram(1000, window=2)
    with pytest.raises(MemoryError, match=r"A window of 1,000,000 rows with 4 features needs 56,000,000 bytes"):
        Gram(4, window=10**6, exact_window=True).absorb(X, y)
    timed = Gram(4, window=1e9, exact_window=True).absorb(X, y, times=[1.0, 2.0, 3.0])
    before = encode(timed)
    with pytest.raises(MemoryError, match=r"A window of 262,144 rows"):
        timed.absorb(np.ones((200_000, 4)), np.ones(200_000), times=np.arange(3.0, 200_003.0))
    assert encode(timed) == before


# -- many responses, and entries of a matrix ---------------------------------------------------------------


@given(st.integers(0, 99), st.integers(1, 300), halves, st.booleans())
def test_many_responses_forget_like_one(seed, n, half_life, timed):
    X, y, w = rows(seed, n)
    Y = np.column_stack([y, X[:, 1] - y])
    times = 3.0 * np.arange(n) if timed else None
    summary = MultiResponse(4, 2, half_life=half_life).absorb(
        X[: n // 2 + 1], Y[: n // 2 + 1], w[: n // 2 + 1], times=None if times is None else times[: n // 2 + 1]
    )
    if n > n // 2 + 1:
        rest = slice(n // 2 + 1, n)
        summary.absorb(X[rest], Y[rest], w[rest], times=None if times is None else times[rest])
    gram = Gram(6, half_life=half_life).absorb(np.hstack([X, Y]), np.zeros(n), w, times=times)
    if gram.weight == 0.0:
        return
    assert summary.weight == gram.weight
    np.testing.assert_array_equal(summary.joint_moments(), gram.comoment())
    coef = np.arange(8.0).reshape(4, 2) - 3.0
    a = factors(np.arange(n)[::-1] * (3.0 if timed else 1.0), half_life) * w
    left = Y - X @ coef - 1.0
    np.testing.assert_allclose(summary.loss(coef, 1.0), a @ (left**2).sum(axis=1) / (2 * a.sum()), rtol=1e-9)
    gradient = -(X.T * a) @ left / a.sum()
    np.testing.assert_allclose(summary.gradient(coef, 1.0), gradient, rtol=1e-7, atol=1e-8 * np.abs(gradient).max())
    plain = summary.plain()
    assert not plain.forgets
    np.testing.assert_allclose(plain.joint_moments(), summary.joint_moments(), rtol=1e-9, atol=1e-9 * gram.weight)


def test_scaled_responses_and_entries_merge_with_their_factors():
    X, y, w = rows(8, 90)
    Y = np.column_stack([y, -y])
    both = MultiResponse(4, 2).absorb(X[:50], Y[:50]).scaled(0.25).merge(MultiResponse(4, 2).absorb(X[50:], Y[50:]))
    a = np.repeat([0.25, 1.0], [50, 40])
    np.testing.assert_allclose(both.mean_y, a @ Y / a.sum(), rtol=1e-12)
    np.testing.assert_allclose(both.weight, a.sum() ** 2 / (a @ a), rtol=1e-12)
    assert both.half_life is None
    with pytest.raises(ValueError, match="Cannot subtract"):
        both.subtract(both)

    rng = np.random.default_rng(0)
    i, j, v = rng.integers(0, 3, 90), rng.integers(0, 2, 90), rng.standard_normal(90)
    old, new = (
        Entries((3, 2)).absorb(i[:50], j[:50], v[:50], w[:50]),
        Entries((3, 2)).absorb(i[50:], j[50:], v[50:], w[50:]),
    )
    theta = rng.standard_normal((3, 2))
    left = v - theta[i, j] - 0.5
    for merged in (
        old.scaled(0.25).merge(new),
        new.merge(old.scaled(0.25)),
        old.scaled(0.25).absorb(i[50:], j[50:], v[50:], w[50:]),
    ):
        for summary in (merged, merged.plain(), merged.scaled(0.5), merged.copy()):
            np.testing.assert_allclose(summary.weight, (w @ a) ** 2 / (w @ a**2), rtol=1e-12)
            np.testing.assert_allclose(summary.loss(theta, 0.5), (w * a) @ left**2 / (2 * (w @ a)), rtol=1e-12)
        assert merged.forgets
        assert not merged.plain().forgets
    np.testing.assert_allclose(merged.best_intercept(theta), (w * a) @ (v - theta[i, j]) / (w @ a), rtol=1e-10)
    with pytest.raises(ValueError, match="Cannot subtract"):
        merged.subtract(new)
    with pytest.raises(ValueError, match="factor must be"):
        old.scaled(2.0)


def test_a_window_never_waits_for_more_rows_than_a_block(tmp_path):
    """A file that says so is refused: the next fold would never come."""
    gram = Gram(3, window=40, exact_window=True).absorb(np.ones((20, 3)), np.ones(20))
    gram._window.n_waiting = gram.block_size
    with pytest.raises(ValueError, match="Gram"):
        gram.save(tmp_path / "g")
