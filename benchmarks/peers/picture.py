"""One picture: error against time spent, one point per method, ours marked."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS_COLOUR, ROW_COLOUR, REFIT_COLOUR = "#c8102e", "#33567f", "#8a8a8a"
SHORT = {
    "thresher": "thresher",
    "thresher, row by row": "row by row",
    "thresher refit": "refit",
    "lasso on a Gram": "lasso",
    "lasso on a Gram + refit": "lasso + refit",
    "OMP on a Gram": "OMP",
    "MCP on a Gram (skglm)": "MCP",
    "LassoCV refit": "LassoCV",
    "abess refit, automatic": "abess",
    "abess refit, fixed size": "abess, fixed",
    "skscope refit": "skscope",
    "Algorithm 1, NumPy": "Algorithm 1",
    "recursive least squares, top s": "RLS top s",
    "SGD l1": "SGD l1",
    "SGD l1, row by row": "SGD l1, rows",
    "SGD elastic net": "SGD e. net",
    "SGD elastic net, row by row": "SGD e. net, rows",
    "river l1, learn_one": "river l1",
    "river l1, learn_many": "river l1, many",
    "river FTRL, learn_one": "river FTRL",
    "river FTRL, learn_many": "river FTRL, many",
    "Vowpal Wabbit l1": "VW l1",
    "Vowpal Wabbit FTRL": "VW FTRL",
}


def draw(rows, path):
    """Squared error against seconds after the last row, a panel per design."""
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    n_columns = min(3, len(problems))
    n_lines = -(-len(problems) // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(5.2 * n_columns, 4.6 * n_lines), squeeze=False, layout="constrained"
    )
    for axis, problem in zip(axes.flat, problems, strict=False):
        panel(axis, problem, [row for row in rows if row["problem"] == problem])
    for axis in axes.flat[len(problems) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("seconds spent in all")
    for axis in axes[:, 0]:
        axis.set_ylabel("squared error")
    handles = [
        plt.Line2D([], [], marker="*", ls="", ms=13, color=OURS_COLOUR, label="thresher, nothing tuned"),
        plt.Line2D([], [], marker="o", ls="", color=ROW_COLOUR, label="estimate after every row, or block, tuned"),
        plt.Line2D([], [], marker="o", ls="", mfc="none", color=REFIT_COLOUR, label="refits four times, tuned"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def panel(axis, problem, rows):
    last = max(row["rows"] for row in rows)
    points = [row for row in rows if row["rows"] == last]
    worst = max(row["squared_error"] for row in points)
    for row in points:
        ours, refit = row["method"].startswith("thresher"), row["estimates"] == "checkpoint"
        colour = OURS_COLOUR if ours else REFIT_COLOUR if refit else ROW_COLOUR
        marker = {"marker": "*", "ms": 14} if row["method"] == "thresher" else {"marker": "o", "ms": 5}
        axis.plot(row["seconds"], row["squared_error"], color=colour, mfc="none" if refit else colour, ls="", **marker)
    axis.set(xscale="log", yscale="log", title=f"{problem}, after {last:,} rows")
    axis.set_ylim(top=2.0 * worst)
    axis.grid(alpha=0.25)
    label(axis, points)


def label(axis, points):
    """Names beside the points, moved down where they would cover each other."""
    axis.figure.canvas.draw()
    placed = []
    for row in sorted(points, key=lambda row: row["squared_error"]):
        x, y = axis.transData.transform((row["seconds"], row["squared_error"]))
        text = SHORT[row["method"]]
        width = 5.6 * len(text)
        for dx, dy in (
            (7, -3),
            (7, 6),
            (7, -12),
            (-7 - width, -3),
            (-7 - width, 6),
            (-7 - width, -12),
            (7, 15),
            (7, -21),
        ):
            box = (x + dx, y + dy, x + dx + width, y + dy + 9)
            if all(box[2] < b[0] or b[2] < box[0] or box[3] < b[1] or b[3] < box[1] for b in placed):
                break
        placed.append(box)
        ours = row["method"].startswith("thresher")
        axis.annotate(
            text,
            (x + dx, y + dy),
            xycoords="figure pixels",
            fontsize=8,
            color=OURS_COLOUR if ours else "black",
            weight="bold" if row["method"] == "thresher" else "normal",
        )
