"""The command: ``python -m reproduction``, from the root of the repository."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from reproduction.experiments import ITEMS
from reproduction.parallel import FailedCellsError
from reproduction.profiles import FULL, QUICK
from reproduction.reproduce import cells_of, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the result is the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        import matplotlib  # noqa: F401  # before hours of computing, not after
    except ImportError:
        parser.error("pictures need matplotlib; install it with: pip install 'thresher[plot]'")
    profile = QUICK if options.quick else FULL
    if options.seeds is not None:
        profile = replace(profile, vector_seeds=options.seeds, matrix_seeds=options.seeds)
    items = [item for name, item in ITEMS.items() if not options.only or name in options.only]
    output = options.output or Path("build") / "reproduction" / profile.name
    try:
        output.mkdir(parents=True, exist_ok=True)
        n_cells = len(cells_of(items, profile))
        print(f"{len(items)} figures and tables, {n_cells} cells, {profile.name} profile; results go to {output}/.")
        page, shown = reproduce(items, profile, output, options.jobs, progress=True)
    except KeyboardInterrupt:
        print(f"\nInterrupted. {_RESUME.format(output)}")
        return 130
    except (OSError, FailedCellsError, BrokenProcessPool) as error:
        print(f"\n{type(error).__name__}: {error}\n{_RESUME.format(output)}", file=sys.stderr)
        return 1
    for one in shown:
        print(f"\n{one.item.name}: {one.item.title}")
        for claim in one.claims:
            print(f"  [{claim.verdict}] {claim.text}\n      {claim.evidence} Rule: {claim.rule}.")
    print(f"\nReport: {page}")
    return 0


_RESUME = "Finished cells are in {}/cells; run the same command again to compute the rest."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Compute the paper's figures and tables and write a report. An interrupted run continues where it "
        "stopped.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: minutes instead of hours")
    parser.add_argument(
        "--seeds", type=_positive, metavar="N", help="instead of 10 for vectors and 5 for matrices (quick: 3 and 2)"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(ITEMS),
        metavar="NAME",
        help=f"one of {', '.join(ITEMS)}; may be repeated",
    )
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes, instead of one per processor")
    parser.add_argument("--output", type=Path, metavar="DIR", help="directory, instead of build/reproduction/PROFILE")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())
