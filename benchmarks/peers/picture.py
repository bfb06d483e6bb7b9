"""One picture: error against time spent, one point per method, ours marked."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS_COLOUR, ROW_COLOUR, REFIT_COLOUR = "#c8102e", "#33567f", "#8a8a8a"
DIVERGED = 100.0
SHORT = {
    "thresher": "thresher",
    "thresher, row by row": "row by row",
    "thresher, cv": "cv",
    "thresher, Algorithm 1": "Algorithm 1",
    "thresher, Algorithm 1, tuned": "Algorithm 1, tuned",
    "lasso on a Gram": "lasso",
    "lasso on a Gram + refit": "lasso + refit",
    "OMP on a Gram": "OMP",
    "MCP on a Gram (skglm)": "MCP",
    "lasso on a Gram, in blocks": "lasso, blocks",
    "lasso on a Gram + refit, in blocks": "lasso + refit, blocks",
    "OMP on a Gram, in blocks": "OMP, blocks",
    "MCP on a Gram (skglm), in blocks": "MCP, blocks",
    "LassoCV refit": "LassoCV",
    "abess refit, automatic": "abess",
    "abess refit, fixed size": "abess, fixed",
    "skscope refit": "skscope",
    "Algorithm 1, NumPy": "Algorithm 1, NumPy",
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
    rows = [row for row in rows if row["method"] in SHORT]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    n_columns = min(3, len(problems))
    n_lines = -(-len(problems) // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(5.2 * n_columns, 4.6 * n_lines), dpi=110, squeeze=False, layout="constrained"
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
        plt.Line2D([], [], marker="*", ls="", ms=13, color=OURS_COLOUR, label="thresher's default, nothing tuned"),
        plt.Line2D([], [], marker="o", ls="", color=OURS_COLOUR, label="thresher otherwise"),
        plt.Line2D([], [], marker="o", ls="", color=ROW_COLOUR, label="estimate after every row, tuned"),
        plt.Line2D([], [], marker="s", ls="", color=ROW_COLOUR, label="after every 100 rows, tuned"),
        plt.Line2D([], [], marker="o", ls="", mfc="none", color=REFIT_COLOUR, label="refits four times, tuned"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    figure.canvas.draw()  # panels have their final place, so that names can be put beside the points
    figure.set_layout_engine("none")
    for axis, problem in zip(axes.flat, problems, strict=False):
        label(axis, last_of(rows, problem))
    figure.savefig(path, dpi=figure.dpi)
    plt.close(figure)


def last_of(rows, problem):
    """What is known after the last row, of methods that are better than nothing by far: others diverged."""
    rows = [row for row in rows if row["problem"] == problem]
    last = max(row["rows"] for row in rows)
    return [row for row in rows if row["rows"] == last and row["squared_error"] < DIVERGED]


def panel(axis, problem, rows):
    points = last_of(rows, problem)
    errors = [row["squared_error"] for row in points]
    for row in points:
        ours, refit = row["method"].startswith("thresher"), row["estimates"] == "checkpoint"
        colour = OURS_COLOUR if ours else REFIT_COLOUR if refit else ROW_COLOUR
        marker = {"marker": "s" if row["estimates"] == "block" else "o", "ms": 5}
        if row["method"] == "thresher":
            marker = {"marker": "*", "ms": 14}
        axis.plot(row["seconds"], row["squared_error"], color=colour, mfc="none" if refit else colour, ls="", **marker)
    axis.set(xscale="log", yscale="log", title=f"{problem}, after {points[0]['rows']:,} rows")
    axis.set_ylim(0.6 * min(errors), 1.8 * max(errors))
    axis.set_xlim(right=5.0 * max(row["seconds"] for row in points))
    axis.grid(alpha=0.25)


def overlap(a, b):
    """The area that two boxes (left, bottom, right, top) share."""
    return max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)


def label(axis, points):
    """Names beside the points, where they cover neither each other nor a point."""
    spots = [axis.transData.transform((row["seconds"], row["squared_error"])) for row in points]
    radii = [11 if row["method"] == "thresher" else 5 for row in points]
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(spots, radii, strict=True)]
    renderer, frame = axis.figure.canvas.get_renderer(), axis.get_window_extent()
    for row, (x, y) in sorted(zip(points, spots, strict=True), key=lambda pair: pair[0]["method"] != "thresher"):
        ours = row["method"].startswith("thresher")
        text = axis.annotate(
            SHORT[row["method"]],
            (row["seconds"], row["squared_error"]),
            (0.0, 0.0),
            textcoords="offset pixels",
            fontsize=8,
            color=OURS_COLOUR if ours else "black",
            weight="bold" if row["method"] == "thresher" else "normal",
        )
        extent = text.get_window_extent(renderer)
        w, h = extent.width, extent.height
        gap = 12 if row["method"] == "thresher" else 7
        places = [(gap, -h / 2), (-gap - w, -h / 2), (-w / 2, gap + 1), (-w / 2, -gap - 1 - h)]
        places += [(dx, k * h) for k in (1, -2, 2, -3, 3, -4, 4, -5) for dx in (gap, -gap - w)]
        places += [(-w / 2, k * h) for k in (2, -3, 3, -4, 4, -5)]
        boxes = [(x + dx, y + dy, x + dx + w, y + dy + h) for dx, dy in places]
        inside = [b[0] > frame.x0 and b[2] < frame.x1 and b[1] > frame.y0 and b[3] < frame.y1 for b in boxes]
        covered = [
            sum(overlap(box, other) for other in taken) + (not fits) * w * h
            for box, fits in zip(boxes, inside, strict=True)
        ]
        best = covered.index(min(covered))
        (dx, dy), box = places[best], boxes[best]
        taken.append(box)
        text.set_position((dx, dy))
