"""Side by side with what users pick today: the same rows for everyone, error, time and memory.

python benchmarks/peers run             # what is not measured yet, then the report; less than an hour
python benchmarks/peers run --quick     # small problems only; a few minutes
python benchmarks/peers tune            # find the settings of the baselines again; hours

# Ours only, beside the baselines of the saved report; and save the new one.
python benchmarks/peers run --methods ours --before docs/benchmarks --save docs/benchmarks
"""

import argparse
import os
from pathlib import Path

# One thread for everyone, before anything is imported that would start more.
os.environ |= {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}

import tuning
from problems import PROBLEMS
from real_data import DATA_SETS
from report import report
from running import run, wanted_cells
from store import Store
from tables import marked
from verdicts import dominating, standings

ROOT = Path(__file__).parents[2]


def main():
    parser = argparse.ArgumentParser(prog="peers", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "report", "tune"])
    parser.add_argument("--quick", action="store_true", help="small problems only")
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS, *DATA_SETS], help="what to run or tune on")
    parser.add_argument("--methods", nargs="+", help="what to run or tune; 'ours' stands for all of ours")
    parser.add_argument("--processes", type=int, default=2, help="how many streams to measure at a time")
    parser.add_argument("--output", type=Path, help="where measurements are kept, to go on from")
    parser.add_argument("--before", type=Path, help="take baselines that are not measured from the report in here")
    parser.add_argument("--save", type=Path, help="also write tables and picture here")
    arguments = parser.parse_args()
    if arguments.what == "tune":
        names = arguments.problems or [*PROBLEMS, *DATA_SETS]
        tuning.tune([name for name in names if name in PROBLEMS], arguments.methods)
        tuning.tune_on([name for name in names if name in DATA_SETS], arguments.methods)
        return
    output = arguments.output or ROOT / "bench-peers" / ("quick" if arguments.quick else "full")
    store = Store(output)
    if arguments.what == "run":
        run(store, list(wanted_cells(arguments.quick, arguments.problems, arguments.methods)), arguments.processes)
    for directory in filter(None, (output, arguments.save)):
        synthetic, real = report(store, directory, arguments.quick, arguments.before)
        print(f"{directory}: tables.md, peers.csv, real.csv, standings.csv, lost.csv, versions.json, peers.png")
    print_summary(synthetic, real)


def print_summary(synthetic, real):
    found = dominating(synthetic)
    print(f"baselines better than ours in both error and time at one of the last two checkpoints: {len(found)}")
    for row in found:
        print(f"  {row['problem']}, {row['rows']} rows: {marked(row)}")
    print("real data: R2 and features of ours, and of the best streaming peer")
    for row in standings(real):
        print(
            f"  {row['problem']}: {row['r2']:.4f}, {row['features']:.0f}; "
            f"{row['best_peer']} {row['best_r2']:.4f}, {row['best_features']:.0f}"
        )


if __name__ == "__main__":
    main()
