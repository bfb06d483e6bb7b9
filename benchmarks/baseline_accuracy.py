"""Every vector method on the same streams: the paper's independent and Toeplitz 0.5 designs, 10,000 rows.

Each baseline gets the best of a small grid, chosen for each design by the median error after the last row on other
seeds. Records are kept in benchmarks/results/baselines/, seed by seed; delete lines to run them again.

    python benchmarks/baseline_accuracy.py    # what is missing, then the tables and the picture of docs/baselines.md
"""

import argparse
import json
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.baselines import (
    IHT,
    NIHT,
    AdaGradL1,
    AdaptiveDantzig,
    Comparison,
    DebiasedSGD,
    DualAveraging,
    FTRLProximal,
    IncrementalProximal,
    OnlineDebiasedLasso,
    OnlineLasso,
    OnlineLinearizedLasso,
    OSLasso,
    StreamingSparseRegression,
    compare,
)
from thresher.baselines._comparison import Record
from thresher.io.sources.synthetic import SparseLinearStream

RESULTS = Path(__file__).parent / "results" / "baselines"
DOCS = Path(__file__).parent.parent / "docs"
DESIGNS = {"independent": {}, "Toeplitz 0.5": {"correlation": 0.5}}
CHECKPOINTS = (100, 300, 1000, 3000, 10_000)
SEEDS = (0, 1, 2)
TUNING_SEEDS = (1000, 1001, 1002)
# Beside the step of the paper's figures, longer ones and certified steps: rivals have grids of steps, too.
STEPS = {"step_size": [0.001, 0.01, 0.1, 0.3, "auto"], "n_steps": [1, 5, 20]}


def grid(method, **values):
    return [method(**dict(zip(values, choice, strict=True))) for choice in product(*values.values())]


# In the order of the tables. A grid of one is a method with nothing to tune.
GRIDS = {
    "SparseRegressor()": [SparseRegressor()],
    "OnlineHardThresholding": grid(partial(OnlineHardThresholding, n_warmup=100), sparsity=[15, 20, 30, 50], **STEPS),
    "OnlineLasso": grid(OnlineLasso, penalty=[0.4, 0.5, 0.6, 0.7, 0.85, 1.0]),
    "OnlineLinearizedLasso": grid(OnlineLinearizedLasso, penalty=[0.4, 0.5, 0.6, 0.7, 0.85], n_warmup=[100, 200, 500]),
    "OnlineDebiasedLasso": grid(OnlineDebiasedLasso, penalties=[(0.5, 1.0, 1.5, 2.0), (0.4, 0.5, 0.6, 0.7, 0.85)]),
    "OSLasso": grid(OSLasso, n_warmup=[100, 200, 500], step_size=[0.001, 0.1], n_steps=[1, 20]),
    "OSLasso, by samples": grid(
        partial(OSLasso, update="samples"),
        n_warmup=[200, 500],
        step_size=[0.0003, 0.001, 0.003, 0.01],
        average=[False, True],
    ),
    "AdaptiveDantzig": grid(AdaptiveDantzig, sparsity=[15, 20], penalty=[0.05, 0.1, 0.2]),
    "StreamingSparseRegression": grid(
        StreamingSparseRegression,
        penalty=[1.5, 2.0, 3.0],
        strong_convexity=[0.15, 0.3, 0.5],
        ridge=["auto", 250.0],
        average=[False, True],
    ),
    "DebiasedSGD": grid(DebiasedSGD, step_size=[0.01, 0.02, 0.04, 0.08, 0.16], batch_size=[1, 10]),
    "DualAveraging": grid(DualAveraging, penalty=[0.01, 0.02, 0.04, 0.08], gamma=[15.0, 20.0, 30.0, 45.0]),
    "AdaGradL1": grid(AdaGradL1, penalty=[0.01, 0.02, 0.04, 0.08], step_size=[0.05, 0.1, 0.2, 0.4]),
    "AdaGradL1, mirror": grid(
        partial(AdaGradL1, update="mirror"), penalty=[0.01, 0.03, 0.1], step_size=[0.005, 0.01, 0.02, 0.05]
    ),
    "IncrementalProximal": grid(
        IncrementalProximal, penalty=[0.01, 0.03, 0.1], step_size=[0.005, 0.01, 0.02, 0.04], average=[False, True]
    ),
    "FTRLProximal": grid(FTRLProximal, l1=[100.0, 200.0, 300.0, 400.0, 600.0], alpha=[0.02, 0.03, 0.05, 0.1, 0.2]),
    "IHT": grid(IHT, sparsity=[10, 12, 15, 20]),
    "NIHT": grid(NIHT, sparsity=[10, 12, 15, 20]),
}

# In colour, the same in both panels.
HIGHLIGHTED = [
    "SparseRegressor()",
    "NIHT",
    "OnlineHardThresholding",
    "AdaptiveDantzig",
    "FTRLProximal",
    "OnlineLasso",
    "StreamingSparseRegression",
    "OSLasso",
]


def label(method):
    return " ".join(repr(method).split())


def kept(path, methods, stream, checkpoints, seeds, **options):
    """`compare`, without the runs whose records are in a file; there, methods are named by their settings."""
    records = [Record(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    for seed in seeds:
        done = {record.method for record in records if record.seed == seed}
        missing = {label(method): method for method in methods.values() if label(method) not in done}
        if missing:
            found = compare(missing, stream, checkpoints, [seed], **options)
            with path.open("a") as file:
                file.writelines(json.dumps(record._asdict()) + "\n" for record in found)
            records += found
    return Comparison(
        record._replace(method=name)
        for name, method in methods.items()
        for record in records
        if record.method == label(method) and record.seed in seeds
    )


def tuned(design, stream):
    """The best of every grid on the tuning seeds, by the median error after the last row."""
    candidates = {label(method): method for methods in GRIDS.values() if len(methods) > 1 for method in methods}
    path = RESULTS / f"{slug(design)}-tuning.jsonl"
    found = kept(path, candidates, stream, CHECKPOINTS[-1:], TUNING_SEEDS, n_test=0)
    errors = {name: np.median([record.mse for record in found if record.method == name]) for name in candidates}
    return {
        name: methods[0] if len(methods) == 1 else min(methods, key=lambda method: errors[label(method)])
        for name, methods in GRIDS.items()
    }


def slug(design):
    return design.lower().replace(" ", "-")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="draw docs/baselines.png again")
    save = parser.parse_args().save
    import matplotlib.pyplot as plt

    RESULTS.mkdir(exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(15, 8), layout="constrained")
    for (design, parameters), ax in zip(DESIGNS.items(), axes, strict=True):
        stream = partial(SparseLinearStream, **parameters)
        best = tuned(design, stream)
        found = kept(RESULTS / f"{slug(design)}.jsonl", best, stream, CHECKPOINTS, SEEDS)
        print(f"\n{design}:\n\n{found.to_markdown()}\n")
        for name, method in best.items():
            print(f"- {name}: `{label(method)}`, best of {len(GRIDS[name])}")
        found.plot(highlight=HIGHLIGHTED, ax=ax)
        ax.set_title(design)
    if save:
        figure.savefig(DOCS / "baselines.png", dpi=110)


if __name__ == "__main__":
    main()
