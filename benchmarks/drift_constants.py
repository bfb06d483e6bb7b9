"""Real streams on which constants of `drift=` were chosen; `drift_real.py` judges them on others.

    .venv-peers/bin/pip install bokeh_sampledata==2026.1
    .venv-peers/bin/python benchmarks/drift_constants.py       # a minute; prints the table and keeps it

Rows are in time order. R2 is that of `drift_real.py`, in calls of 50 and of 10 rows.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from real_data import from_r, one_hot

from drift_real import CALLS, r2
from thresher import SparseRegressor

RESULTS = Path(__file__).parent / "results" / "drift_constants.json"


def shifted(values, lags):
    return pd.DataFrame({f"{values.name}-{lag}": values.shift(lag) for lag in lags})


def numbers(table, name):
    """A column, and the number of each row."""
    values = table[name].astype(float).reset_index(drop=True)
    return values, pd.Series(np.arange(len(values)))


def sampled(name):
    import bokeh_sampledata

    return pd.read_csv(Path(bokeh_sampledata.__file__).parent / "_data" / name)


def births():
    """Births of a day in the United States: weekday, month, week, births of earlier weeks and of the last year."""
    table = from_r("mosaicData", "Births")
    day, y = pd.to_datetime(table["date"]).dt, table["births"].astype(float)
    levels = one_hot(day.day_of_week, "w"), one_hot(day.month, "m"), one_hot(day.isocalendar().week, "k")
    return [*levels, shifted(y, [7, 8, 14, 21, 28, 364]), (day.day_of_year / 365.0).to_frame()], y


def calls():
    """Calls of a bank in five minutes: time of day, weekday, calls of the day, two days and the week before."""
    y, step = numbers(from_r("fpp2", "calls"), "x")
    return [one_hot(step % 169 // 4, "t"), one_hot(step // 169 % 5, "w"), shifted(y, [*range(169, 190), 338, 845])], y


def clemson():
    """The highest temperature of a day, three days ahead: month, week, temperatures of the last days and years."""
    table = from_r("stevedata", "clemson_temps")
    day, y, low = pd.to_datetime(table["date"]).dt, table["tmax"].astype(float), table["tmin"].astype(float)
    levels = one_hot(day.month, "m"), one_hot(day.isocalendar().week, "k")
    return [*levels, shifted(y, range(3, 15)), shifted(low, range(3, 15)), shifted(y, [364, 365, 366])], y


def computers():
    """Prices of computers over three years: what they have, and all products."""
    table = from_r("Ecdat", "Computers").sort_values("trend", kind="stable").reset_index(drop=True)
    has = table[["cd", "multi", "premium"]].apply(lambda column: (column == "yes").astype(float))
    every = pd.concat([table[["speed", "hd", "ram", "screen", "ads"]].astype(float), has], axis=1)
    products = [(every[a] * every[b]).rename(a + b) for i, a in enumerate(every) for b in list(every)[i:]]
    return [every, pd.concat(products, axis=1)], np.log(table["price"])


def glucose():
    """Glucose of a patient every five minutes, half an hour ahead: hour, what was measured in the last two hours."""
    table = sampled("CGM.csv.gz")
    y = pd.to_numeric(table["glucose"], errors="coerce")
    hour = pd.to_datetime(table["datetime"], errors="coerce").dt.hour
    return [one_hot(hour, "h"), shifted(y, range(6, 30)), shifted(y.diff().rename("d"), range(6, 12))], y


def keywest():
    """Temperature of the sea every hour, half a day ahead: hour, temperatures of the last days."""
    table = from_r("Stat2Data", "KeyWestWater")
    y = table["WaterTemp"].astype(float)
    hour = pd.to_datetime(table["DateTime"]).dt.hour
    return [one_hot(hour, "h"), shifted(y, [*range(12, 37), 48, 72, 168])], y


def nox():
    """Nitrogen oxides beside a road every hour: traffic and wind, hour, hour by traffic, the days before."""
    table = from_r("robustbase", "NOxEmissions")
    y, step = numbers(table, "LNOx")
    hour, traffic, wind = one_hot(step % 24, "h"), table["LNOxEm"], table["sqrtWS"]
    by_traffic = hour.mul(traffic.to_numpy(), axis=0).add_suffix("e")
    lags = shifted(traffic, [1, 2, 3]), shifted(wind, [1, 2, 3]), shifted(y, [24, 25, 26, 48, 168])
    return [table[["LNOxEm", "sqrtWS"]], hour, *lags, by_traffic], y


def sea():
    """Temperature of the sea every half hour, six hours ahead: hour, month, temperatures of the last days."""
    table = sampled("sea_surface_temperature.csv.gz")
    y, time = table.iloc[:, -1].astype(float), pd.to_datetime(table.iloc[:, 0], utc=True).dt
    return [one_hot(time.hour, "h"), one_hot(time.month, "m"), shifted(y, [*range(12, 37), 48, 168])], y


def taylor():
    """Demand for electricity every half hour, a day ahead: time of day, weekday, demand of the day and week before."""
    y, step = numbers(from_r("forecast", "taylor"), "x")
    return [one_hot(step % 48, "t"), one_hot(step // 48 % 7, "w"), shifted(y, [*range(48, 96), 336])], y


def txhousing():
    """Prices of houses in Texan cities every month: city, month, sales, listings, city by sales."""
    table = from_r("ggplot2", "txhousing").dropna()
    table = table.sort_values(["year", "month"], kind="stable").reset_index(drop=True)
    city, logs = one_hot(table["city"], "c"), np.log(table[["sales", "listings"]] + 1.0)
    by_sales = city.mul(logs["sales"], axis=0).add_suffix("s")
    return [city, one_hot(table["month"], "m"), logs, table[["inventory"]], by_sales], np.log(table["median"])


def volatility():
    """The range of the S&P 500 on a day: ranges, returns and volumes of the days before."""
    table = from_r("gt", "sp500").iloc[::-1].reset_index(drop=True)
    returns = np.log(table["close"]).diff().rename("r")
    y = np.log((table["high"] / table["low"]).clip(1.0001)).rename("y")
    volume = np.log(table["volume"] + 1.0)
    sizes, week = returns.abs().rename("a"), range(1, 6)
    return [shifted(y, range(1, 23)), shifted(sizes, week), shifted(returns, week), shifted(volume, week)], y


def arrays(read):
    """Rows in which nothing is missing, of columns that vary."""
    tables, y = read()
    X, y = np.hstack([table.to_numpy(float) for table in tables]), np.asarray(y, float)
    known = np.isfinite(X).all(axis=1) & np.isfinite(y)
    X = X[known]
    return np.ascontiguousarray(X[:, X.max(axis=0) > X.min(axis=0)]), y[known]


STREAMS = (births, calls, clemson, computers, glucose, keywest, nox, sea, taylor, txhousing, volatility)


def main():
    found = {}
    for read in STREAMS:
        X, y = arrays(read)
        for call in CALLS:
            with threadpool_limits(1):
                one = {str(drift): r2(SparseRegressor(drift=drift), X, y, call) for drift in ("auto", "full", None)}
            found.setdefault(read.__name__, {"shape": X.shape})[f"calls of {call}"] = one
            print(read.__name__, call, {name: round(value, 4) for name, value in one.items()}, flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
