"""Who wins: baselines that dominate, cells that are lost, and how things stand on real data."""

OURS = "thresher"

# A baseline is listed if its error is lower by more than MARGIN, or if it is faster and its error lower by more than
# SAME: less is the rounding of two ways to the same least squares.
MARGIN, SAME = 0.10, 0.001
# Differences of R2 up to this count as small.
NEAR = 0.02


def is_ours(row):
    return row["method"].startswith("thresher")


def dominating(rows, n_last=2):
    """Every baseline that is better than our default in both error and time, at one of the last checkpoints."""
    ours = {(r["problem"], r["rows"]): r for r in rows if r["method"] == OURS}
    at = {problem: sorted(t for p, t in ours if p == problem)[-n_last:] for problem, _ in ours}
    return [
        r
        for r in rows
        if r["rows"] in at[r["problem"]]
        and not is_ours(r)
        and r["squared_error"] < (1.0 - SAME) * ours[r["problem"], r["rows"]]["squared_error"]
        and r["seconds"] < ours[r["problem"], r["rows"]]["seconds"]
    ]


def lost(rows):
    """Every synthetic cell in which a baseline's error is lower by more than the margin, or error and time are both."""
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


def standings(real):
    """For each real data set: ours, the best streaming peer, and the smallest model of a peer nearly as good.

    Peers that refit are no streaming peers. Nearly as good is within NEAR of the best of all, ours included.
    """
    for problem in dict.fromkeys(row["problem"] for row in real):
        found = [row for row in real if row["problem"] == problem and row["estimates"] != "checkpoint"]
        own = next(row for row in found if row["method"] == OURS)
        peers = [row for row in found if not is_ours(row)]
        if not peers:  # not measured yet
            continue
        best = max(peers, key=lambda row: row["r2"])
        near = [row for row in peers if row["r2"] >= max(best["r2"], own["r2"]) - NEAR]
        smallest = min(near, key=lambda row: row["nonzeros"]) if near else None
        yield {
            "problem": problem,
            "r2": own["r2"],
            "features": own["nonzeros"],
            "best_peer": best["method"],
            "best_r2": best["r2"],
            "best_features": best["nonzeros"],
            "behind": best["r2"] - own["r2"],
            "smallest_near": smallest["method"] if smallest else "",
            "smallest_r2": smallest["r2"] if smallest else "",
            "smallest_features": smallest["nonzeros"] if smallest else "",
        }
