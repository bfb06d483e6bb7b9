"""Results as tables in Markdown, of at most six columns."""

import json

from verdicts import is_ours, lost, standings


def tables(synthetic, real):
    parts = ["# All tables of the comparison\n"]
    for problem in dict.fromkeys(row["problem"] for row in synthetic):
        rows = [r for r in synthetic if r["problem"] == problem]
        parts.append(f"## {problem}\n\n" + error_table(rows) + "\n" + model_table(rows))
    parts.append("## Where a baseline is better\n\n" + lost_table(synthetic))
    parts.append("## Real data, methods that stream\n\n" + standings_table(real))
    for problem in dict.fromkeys(row["problem"] for row in real):
        parts.append(f"## {problem}\n\n" + real_table([r for r in real if r["problem"] == problem]))
    return "\n".join(parts)


def by_method(rows):
    """Rows of each method in order of time; the method with the least error at the end comes first."""
    found = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row)
    return sorted(found.values(), key=lambda found: found[-1]["squared_error"])


def error_table(rows):
    """Squared error at every checkpoint, and time."""
    times = list(dict.fromkeys(row["rows"] for row in rows))
    lines = []
    for found in by_method(rows):
        end = found[-1]
        text = f" (+ {end['formatting_per_row']:.0f} for the text)" if end["formatting_per_row"] else ""
        errors = [f"{row['squared_error']:.4g}" for row in found]
        lines.append([marked(end), *errors, f"{end['microseconds_per_row']:.0f}{text}"])
    return markdown(["method", *(f"error at {t:,}" for t in times), "µs per row"], lines)


def model_table(rows):
    """What is kept after the last row."""
    ranks = rows[0]["rank"] != ""
    head = ["rank"] if ranks else ["prediction error", "features", "precision", "recall"]
    lines = []
    for *_, end in by_method(rows):
        predicted = f"{end['prediction_error']:.4g}" if end["prediction_error"] != "" else "not measured"
        before = [] if ranks else [predicted]
        shares = [] if ranks else [f"{end['precision']:.2f}", f"{end['recall']:.2f}"]
        size = f"{end['rank' if ranks else 'nonzeros']:.0f}"
        growing = ", growing" if end["grows"] == "yes" else ""
        lines.append([marked(end), *before, size, *shares, f"{end['state_bytes']:,.0f}{growing}"])
    return markdown(["method", *head, "bytes"], lines)


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


def lost_table(synthetic):
    """One line for each problem and number of rows: the best baseline, and the best one that is faster as well."""
    problems, by_place = list(dict.fromkeys(row["problem"] for row in synthetic)), {}
    for row in sorted(lost(synthetic), key=lambda row: (problems.index(row["problem"]), row["rows"])):
        by_place.setdefault((row["problem"], row["rows"]), []).append(row)
    lines = []
    for (problem, n_rows), baselines in by_place.items():
        baselines = sorted(baselines, key=lambda row: row["error"])
        faster = [row for row in baselines if row["also_faster"] == "yes"]
        best = [f"{marked(row)} {row['our_error'] / row['error']:.2f}" for row in (baselines[0], *faster[:1])]
        lines.append(
            [
                problem,
                f"{n_rows:,}",
                f"{baselines[0]['our_error']:.4g}",
                best[0],
                best[1] if faster else "none",
                len(baselines),
            ]
        )
    head = ["problem", "rows", "our error", "best: our error over its", "best of those also faster", "baselines ahead"]
    return markdown(head, lines)


def standings_table(real):
    head = ["set", "ours", "ours, cv", "ours, Algorithm 1", "best baseline", "smallest baseline within 0.02"]
    others = {(row["problem"], row["method"]): row for row in real}

    def own(problem, method):
        row = others.get((problem, f"thresher, {method}"))
        return "" if row is None else scored(row["r2"], row["nonzeros"])

    return markdown(
        head,
        [
            [
                row["problem"],
                scored(row["r2"], row["features"]),
                own(row["problem"], "cv"),
                own(row["problem"], "Algorithm 1"),
                f"{row['best_peer']} {scored(row['best_r2'], row['best_features'])}",
                f"{row['smallest_near']} {scored(row['smallest_r2'], row['smallest_features'])}"
                if row["smallest_near"]
                else "none",
            ]
            for row in standings(real)
        ],
    )


def scored(r2, features):
    """R2, and features in parentheses."""
    return f"{r2:.3f} ({features:.0f})"


def markdown(head, lines):
    right = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, right, *lines]) + "\n"
