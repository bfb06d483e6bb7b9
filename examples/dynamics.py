"""Which equations does this stream obey? Two chaotic systems, found from noisy samples in one pass.

Streams of Lorenz (56 monomials) and Lorenz-96 (66) with measurement noise go through `SparseRegressor`, one for each
variable. Prints the equations found beside the true ones and those of PySINDy's STLSQ (if PySINDy is there), how often
they are exact over ten streams and four noise levels, and what is kept in memory. Writes docs/benchmarks/dynamics.csv
and dynamics.png. A few minutes; --quick takes two streams of one noise level, a quarter as long, some 20 seconds, and
writes nothing unless told where.

    pip install . matplotlib pysindy==2.1.0
    python examples/dynamics.py
"""

import argparse
import csv
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from dynamics_learner import Dynamics, judge
from dynamics_stlsq import pysindy, stlsq, tuned
from dynamics_systems import NOISES, in_units, lorenz, lorenz96, observe, trajectories

SEEDS = range(10)
OURS, DEFAULT, SMOOTHED, WEAK = "SparseRegressor", "STLSQ, defaults", "STLSQ, smoothed, tuned", "STLSQ, weak, tuned"
KINDS = {DEFAULT: "default", SMOOTHED: "smoothed", WEAK: "weak"}
CHECKPOINTS = (30, 60, 125, 250, 500, 1000, 2000, 4000, 8000, 12500)  # windows


def learner(system):
    return Dynamics(len(system.names), system.degree, system.dt, system.window)


def methods(system, noises):
    """What there is to compare: ours, and STLSQ if PySINDy is there, with settings for these noise levels."""
    if pysindy is None:
        return [OURS]
    return [OURS, *(name for name, kind in KINDS.items() if all(tuned(system, noise, kind) for noise in noises))]


def find(method, system, samples, noise):
    """The equations by one method."""
    if method == OURS:
        return learner(system).feed(samples).equations()
    return stlsq(system, samples, noise, KINDS[method])


def study(system, noises, seeds, clean, show=print):
    """Every method on every stream. Returns a list of dicts, one for each run."""
    results, shown, begin = [], time.monotonic(), time.monotonic()
    runs = [(noise, i) for noise in noises for i in range(len(seeds))]
    for done, (noise, i) in enumerate(runs):
        samples = observe(clean[i], noise, seeds[i])
        for method in methods(system, noises):
            verdict = judge(find(method, system, samples, noise), system.truth)
            case = {"system": system.name, "noise": noise, "method": method, "seed": seeds[i]}
            results.append({**case, "equations": len(system.truth), **vars(verdict)})
        if time.monotonic() - shown > 5.0:
            shown = time.monotonic()
            show(f"  {system.name}: {done + 1} of {len(runs)} streams, {shown - begin:.0f} s", flush=True)
    return results


def history(system, noise, seeds, clean):
    """Verdicts on the way, at CHECKPOINTS, for every stream."""
    rows = []
    for seed, trajectory in zip(seeds, clean, strict=True):
        samples, model, start, verdicts = observe(trajectory, noise, seed), learner(system), 0, []
        for end in (n * system.window for n in CHECKPOINTS if n * system.window <= len(samples)):
            model.feed(samples[start:end])
            start = end
            verdicts.append(judge(model.equations(), system.truth))
        rows.append(verdicts)
    return rows


def memory(system, samples, repeats=(1, 2, 4)):
    """Bytes kept after some samples; the stream is repeated, since memory does not look at values."""
    model, table = learner(system), []
    for n in (len(samples) // 100, len(samples) // 10):
        table.append((n, *learner(system).feed(samples[:n]).state_bytes()))
    for k in range(1, max(repeats) + 1):
        model.feed(samples)
        if k in repeats:
            table.append((k * len(samples), *model.state_bytes()))
    return table


def term_name(term, names):
    """x0 x2 for (0, 2), 1 for ()."""
    powers = [names[i] + (f"^{term.count(i)}" if term.count(i) > 1 else "") for i in sorted(set(term))]
    return " ".join(powers) or "1"


def equation_text(coefficients, names):
    """A right-hand side, up to six terms."""
    terms = sorted(coefficients.items(), key=lambda item: (len(item[0]), item[0]))
    parts = [f"{value:+.3f} {term_name(term, names)}" for term, value in terms[:6]]
    return " ".join(parts) + (f" ... {len(terms)} terms in all" if len(terms) > 6 else "") if parts else "0"


def print_equations(system, noise, seed, trajectory):
    """The true equations and those by every method, for one stream."""
    samples = observe(trajectory, noise, seed)
    found = {"truth": system.truth}
    for method in methods(system, [noise]):
        found[method] = [equation.as_dict() for equation in find(method, system, samples, noise)]
    print(f"\n{system.name}, noise {noise:.1%}, stream {seed}, {len(samples):,} samples")
    for j, name in enumerate(system.names[:3]):
        for method, equations in found.items():
            side = f"d{name}/dt" if method == "truth" else ""
            print(f"  {side:7} {method:22} {equation_text(equations[j], system.names)}")


def print_table(results):
    """Exact streams, exact equations and the error of the coefficients, by system, noise and method."""
    titles = ("system", "noise", "method", "streams exact", "equations exact", "missing, false terms")
    print("\n|", " | ".join((*titles, "median error", "largest")), "|")
    print("|---|---|---|---|---|---|---|---|")
    for system, noise, method in dict.fromkeys((r["system"], r["noise"], r["method"]) for r in results):
        part = [r for r in results if (r["system"], r["noise"], r["method"]) == (system, noise, method)]
        errors = [r["error"] for r in part]
        print(
            f"| {system} | {noise:.1%} | {method} | {sum(r['exact'] for r in part)} of {len(part)} "
            f"| {sum(r['right'] for r in part)} of {sum(r['equations'] for r in part)} "
            f"| {sum(r['missing'] for r in part)}, {sum(r['false'] for r in part)} "
            f"| {np.median(errors):.2%} | {max(errors):.2%} |"
        )


def versions():
    found = {}
    for package in ("thresher", "pysindy", "numpy", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


def save(results, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**row, "error": f"{row['error']:.6g}", "exact": int(row["exact"]), **versions()} for row in results]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two streams of each system at 1 %% noise")
    parser.add_argument("--output", type=Path, help="directory for dynamics.csv and dynamics.png")
    args = parser.parse_args()
    output = args.output
    if output is None and not args.quick:
        output = Path(__file__).parents[1] / "docs" / "benchmarks"
    noises, seeds = ((0.01,), SEEDS[:2]) if args.quick else (NOISES, SEEDS)
    if pysindy is None:
        print("PySINDy is not installed, so ours alone is shown; for both: pip install pysindy==2.1.0")

    systems, results, clean = (lorenz(), lorenz96()), [], {}
    for system in systems:
        duration = system.duration / (4.0 if args.quick else 1.0)
        print(f"{system.name}: integrating {len(seeds)} trajectories of {duration:g} time units ...", flush=True)
        clean[system.name] = trajectories(system, seeds, duration)
        results += study(system, noises, seeds, clean[system.name])
        print_equations(system, 0.01, seeds[0], clean[system.name][0])
    # The same streams in centimetres instead of metres, so to speak.
    results += study(in_units(systems[0], 100.0), (0.01,), seeds, 100.0 * clean[systems[0].name])
    print_table(results)

    system = systems[0]
    print("\nKept of the Lorenz stream, all three equations:")
    kept = memory(system, observe(clean[system.name][0], 0.01, seeds[0]), (1,) if args.quick else (1, 4))
    for n, moments, stored in kept:
        print(f"  after {n:>9,} samples: {moments:,} bytes of moments and buffers, {stored:,} with everything else")
    if output is not None:
        save(results, output / "dynamics.csv")
        from dynamics_picture import draw

        path = history(system, 0.01, seeds, clean[system.name])
        draw(systems, clean, results, path, output / "dynamics.png")
        print(f"\nWritten: {output / 'dynamics.csv'} and dynamics.png")


if __name__ == "__main__":
    main()
