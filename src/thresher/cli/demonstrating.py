"""The default and the paper's algorithm on rows whose truth is known, live."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from thresher.estimators.online_hard_thresholding import OnlineHardThresholding
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

N_ROWS, N_FEATURES, N_ACTIVE, BLOCK = 10_000, 1000, 15, 100
# Row counts at which the errors of both are compared.
COUNTS = (1000, 3000, 10_000)


def _stream() -> SparseLinearStream:
    return SparseLinearStream(N_FEATURES, N_ACTIVE, signal=0.2, noise=1.0, seed=7)


def demonstrate(plot: Path) -> None:
    """Stream the rows, then show the support and draw the picture; the paper's algorithm on the same rows."""
    console = Console()
    stream = _stream()
    model, history = _run(stream, console)
    console.print(_support_table(model, stream.coef))
    with console.status("the paper's algorithm on the same rows ..."):
        table = _error_table(history)
    console.print(table)
    found = np.count_nonzero((stream.coef != 0) & (model.coef_ != 0))
    _draw(model, stream.coef, history, plot)
    console.print(f"{found} of {N_ACTIVE} active features found; plot written to {plot}")


def _run(stream: SparseLinearStream, console: Console) -> tuple[SparseRegressor, Any]:
    """Stream the rows; returns the model and the error after each block."""
    model, busy = SparseRegressor(), 0.0
    history: list[tuple[int, float]] = []
    columns = (
        TextColumn("streaming"),
        BarColumn(),
        TextColumn("{task.completed:>6,.0f} of {task.total:,.0f} rows"),
        TextColumn("{task.fields[speed]:>7,.0f} rows/s   squared error {task.fields[error]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=N_ROWS, speed=0.0, error=float(stream.coef @ stream.coef))
        for X, y in stream.blocks(N_ROWS, BLOCK):
            start = time.perf_counter()
            model.partial_fit(X, y)
            busy += time.perf_counter() - start
            error = float(((model.coef_ - stream.coef) ** 2).sum())
            history.append((model.n_samples_seen_, error))
            progress.update(task, advance=len(y), speed=model.n_samples_seen_ / busy, error=error)
            if not console.is_terminal and model.n_samples_seen_ % 1000 == 0:
                console.print(
                    f"{model.n_samples_seen_:>6,} rows  {model.n_samples_seen_ / busy:>7,.0f} rows/s  "
                    f"squared error {error:.4f}"
                )
    return model, np.array(history)


def _error_table(history: Any) -> Table:
    """Squared errors of the default and of Algorithm 1 in the paper's setting, on the same rows."""
    stream, start = _stream(), 0
    paper = OnlineHardThresholding(50, n_steps=5, step_size=0.001, n_warmup=100)
    table = Table(title="squared error of the coefficients")
    for name in ("rows", "SparseRegressor()", "OnlineHardThresholding(50, ...)"):
        table.add_column(name, justify="right")
    for count in COUNTS:
        paper.partial_fit(*stream.draw(count - start))
        start = count
        default = float(history[history[:, 0] == count, 1][0])
        table.add_row(f"{count:,}", f"{default:.4f}", f"{((paper.coef_ - stream.coef) ** 2).sum():.4f}")
    return table


def _support_table(model: SparseRegressor, truth: Any) -> Table:
    """True and recovered coefficients, largest first."""
    table = Table(title=f"support after {model.n_samples_seen_:,} rows (s = {model.sparsity_})")
    for name in ("feature", "true", "recovered"):
        table.add_column(name, justify="right")
    table.add_column("")
    chosen = np.flatnonzero((truth != 0) | (model.coef_ != 0))
    for j in sorted(chosen, key=lambda j: (-abs(truth[j]), -abs(model.coef_[j]))):
        verdict = "found" if truth[j] and model.coef_[j] else "missed" if truth[j] else "spare"
        style = {"found": "green", "missed": "red", "spare": "dim"}[verdict]
        cells = [f"{value:.3f}" if value else "-" for value in (truth[j], model.coef_[j])]
        table.add_row(str(j), *cells, verdict, style=style)
    return table


def _draw(model: SparseRegressor, truth: Any, history: Any, path: Path) -> None:
    """Error against rows, and recovered against true coefficients."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.loglog(history[:, 0], history[:, 1], color="#1b6ca8")
    rows = history[history[:, 0] >= 1000, 0]
    left.loglog(rows, history[-1, 1] * N_ROWS / rows, "--", color="#999999", label="slope -1")
    left.set(xlabel="rows", ylabel="squared error of the coefficients", title="error while streaming")
    left.legend(frameon=False)
    shown = np.flatnonzero((truth != 0) | (model.coef_ != 0))
    shown = shown[np.argsort(truth[shown] + 1e-6 * model.coef_[shown])]
    place = np.arange(len(shown))
    right.axhline(0.0, color="#cccccc", linewidth=0.8)
    right.plot(place, truth[shown], "o", mfc="none", mec="#222222", markersize=9, label="true")
    right.plot(place, model.coef_[shown], ".", color="#d1495b", markersize=9, label="recovered")
    right.set_xticks(place, [str(j) for j in shown], rotation=90, fontsize=8)
    right.set(xlabel="feature", ylabel="coefficient", title="support: true and recovered")
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)
