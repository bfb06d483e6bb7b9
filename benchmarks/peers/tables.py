"""Results as tables in Markdown."""

import json

from verdicts import is_ours, lost, standings


def tables(synthetic, real):
    parts = []
    for problem in dict.fromkeys(row["problem"] for row in synthetic):
        parts.append(f"## {problem}\n\n" + synthetic_table([r for r in synthetic if r["problem"] == problem]))
    parts.append("## cells that are lost\n\n" + lost_table(synthetic))
    parts.append("## real data, streaming methods\n\n" + standings_table(real))
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


def lost_table(synthetic):
    """One line for each problem and number of rows; rivals from the best one on, with what our error is of theirs."""
    problems, by_place = list(dict.fromkeys(row["problem"] for row in synthetic)), {}
    for row in sorted(lost(synthetic), key=lambda row: (problems.index(row["problem"]), row["rows"])):
        by_place.setdefault((row["problem"], row["rows"]), []).append(row)
    lines = []
    for (problem, n_rows), rivals in by_place.items():
        rivals = sorted(rivals, key=lambda row: row["error"])
        names = [
            f"{marked(row)} {row['our_error'] / row['error']:.2f}"
            + (" and faster" if row["also_faster"] == "yes" else "")
            for row in rivals
        ]
        lines.append([problem, f"{n_rows:,}", f"{rivals[0]['our_error']:.4g}", "; ".join(names)])
    return markdown(["problem", "rows", "our error", "rivals: our error over theirs"], lines)


def standings_table(real):
    head = ["set", "ours: R2", "features", "best peer", "R2", "features", "smallest within 0.02", "R2", "features"]
    head += ["ours, every feature: R2", "features"]
    return markdown(
        head,
        [
            [
                row["problem"],
                f"{row['r2']:.4f}",
                f"{row['features']:.0f}",
                row["best_peer"],
                f"{row['best_r2']:.4f}",
                f"{row['best_features']:.0f}",
                *(
                    [row["smallest_near"], f"{row['smallest_r2']:.4f}", f"{row['smallest_features']:.0f}"]
                    if row["smallest_near"]
                    else ["none", "", ""]
                ),
                *([f"{row['lavish_r2']:.4f}", f"{row['lavish_features']:.0f}"] if row["lavish_r2"] else ["", ""]),
            ]
            for row in standings(real)
        ],
    )


def markdown(head, lines):
    right = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, right, *lines]) + "\n"
