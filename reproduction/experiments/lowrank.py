"""The common part of the low-rank experiments: cells, panels and a claim."""

from collections.abc import Callable, Sequence

from reproduction.cells import Cell
from reproduction.item import Case, Claim, Panel, Results, partly, together
from reproduction.profiles import REFERENCES, STEPS, Profile
from reproduction.trends import CONVERGES, converges

# Standard deviation of the entries whose rank-5 approximation is the truth.
SCALES = {"as tabulated": 0.2, "as stated": 1.0}
T0 = 100

CHOICES = (
    "As stated: the truth is the low-rank part of a matrix of N(0, 1) entries. At the paper's sizes its singular "
    "values are then 12 to 14, and leaving one out costs about 150, not the 5.7 of the paper's table. As tabulated: "
    "entries of standard deviation 0.2, which does agree with the table.",
    "The paper states no step size here; 0.001 as in its sparse experiments agrees with its table.",
    "The oracle is least squares over the tangent space of the truth: it knows in which directions a matrix of that "
    "rank can differ from the truth.",
)


def ranks(profile: Profile) -> tuple[int, ...]:
    """Projection ranks: two too small, the right one, and multiples."""
    r = profile.rank
    return (r - 2, r - 1, r, 2 * r, 3 * r, 4 * r)


def batch_cell(scale: str, s: int) -> str:
    """Name of cells with a batch."""
    return f"lowrank {scale} s={s}"


def free_cell(scale: str, s: int) -> str:
    """Name of cells without one."""
    return f"lowrank-free {scale} s={s}"


def reference_cell(scale: str) -> str:
    """Name of cells of the default and the oracle."""
    return f"lowrank-reference {scale}"


def batch_cells(profile: Profile, sizes: tuple[int, ...]) -> list[Cell]:
    """Algorithm 1 after a batch, by scale, rank and seed."""
    return _cells(profile, batch_cell, sizes, T0, profile.n_rounds)


def free_cells(profile: Profile, sizes: tuple[int, ...]) -> list[Cell]:
    """Algorithm 1 without a batch."""
    return _cells(profile, free_cell, sizes, 0, profile.n_rounds_matrix_free)


def _cells(
    profile: Profile, name: Callable[[str, int], str], sizes: tuple[int, ...], t0: int, n_rounds: int
) -> list[Cell]:
    at = profile.times(t0, n_rounds)
    return [
        Cell(
            name(scale, s),
            profile.matrix_design(signal),
            seed,
            tuple(profile.oht(f"OHT K={K}", at, t0, s, K) for K in STEPS),
        )
        for scale, signal in SCALES.items()
        for s in sizes
        for seed in range(profile.matrix_seeds)
    ]


def reference_cells(profile: Profile) -> list[Cell]:
    """The default and the oracle, at all times at which they are drawn."""
    at = profile.times(T0, profile.n_rounds) + profile.times(0, profile.n_rounds_matrix_free)
    methods = profile.references(sorted(set(at)), matrix=True)
    return [
        Cell(reference_cell(scale), profile.matrix_design(signal), seed, methods)
        for scale, signal in SCALES.items()
        for seed in range(profile.matrix_seeds)
    ]


def panel(
    results: Results, title: str, cell: str, scale: str, times: tuple[int, ...], shift: int, log_x: bool
) -> Panel:
    """Error against rounds, with the default and the oracle."""
    lines = {f"OHT K={K}": results.line(cell, f"OHT K={K}", times, shift) for K in STEPS}
    lines |= {label: results.line(reference_cell(scale), label, times, shift) for label in REFERENCES}
    return Panel(title, "online rounds t", lines, log_x=log_x, guide=-1.0 if log_x else None)


def convergence(panels: Sequence[Panel], how: str) -> Claim:
    """Whether the lines of Algorithm 1 converge to the truth, at every scale."""
    cases = {}
    for scale, drawn in by_scale(panels).items():
        lines = {f"{panel.title}, K = {K}": panel.lines[f"OHT K={K}"] for panel in drawn for K in STEPS}
        falls = [float(line.medians[-1] / line.medians[0]) for line in lines.values()]
        failing = [title for title, line in lines.items() if not converges(line)]
        cases[scale] = Case(
            partly(len(lines) - len(failing), len(lines)),
            f"error after the last round over that after the first {min(falls):.2g} to {max(falls):.2g}"
            + (f"; not so for {'; '.join(failing)}." if failing else "."),
        )
    return together(
        f"It converges to the truth {how}.",
        cases,
        f"{CONVERGES}, in nine tenths of the lines; a change in two thirds",
        first_decides=True,
    )


def by_scale(panels: Sequence[Panel]) -> dict[str, list[Panel]]:
    """Panels of each scale, with which their titles begin; those that show the same again are left out."""
    found: dict[str, list[Panel]] = {}
    for drawn in panels:
        if not drawn.log_x:
            found.setdefault(drawn.title.split(",")[0], []).append(drawn)
    return found
