"""The picture of docs/dynamics.md."""

import matplotlib
import numpy as np
from scipy.integrate import solve_ivp

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from dynamics import CHECKPOINTS, DEFAULT, OURS, SMOOTHED, WEAK, find
from dynamics_learner import Library
from dynamics_systems import NOISES, observe

COLOURS = {OURS: "#0b62a4", DEFAULT: "#c9c9c9", SMOOTHED: "#d95f02", WEAK: "#e6b422"}


def integrate(system, equations, begin, duration):
    """The trajectory of equations that were found."""
    library = Library(len(system.names), system.degree)
    coef = np.array([[equation.as_dict().get(term, 0.0) for term in library.terms] for equation in equations])
    t = np.arange(0.0, duration, system.dt)
    return solve_ivp(
        lambda _, u: coef @ library(u[None])[0], (0.0, duration), begin, "DOP853", t, rtol=1e-8, atol=1e-8
    ).y.T


def draw_attractor(axes, system, clean, noise, seed):
    samples = observe(clean, noise, seed)
    line = integrate(system, find(OURS, system, samples, noise), clean[0], 30.0)
    axes.plot(*samples[:10_000:5, [0, 2]].T, ".", color="#f2a65a", markersize=4, label="samples, 1 % noise (some)")
    axes.plot(*line[:, [0, 2]].T, color=COLOURS[OURS], linewidth=0.7, label="trajectory of the equations found")
    axes.set(xlabel="x", ylabel="z", ylim=(0, 60), title="Lorenz: what came in, what was found")
    axes.legend(loc="upper center", frameon=False, ncols=1, markerscale=2)


def draw_history(axes, system, path):
    windows = np.array(CHECKPOINTS[: len(path[0])])
    for i, verdicts in enumerate(path):
        errors = np.array([verdict.error for verdict in verdicts])
        exact = np.array([verdict.exact for verdict in verdicts])
        first = len(exact) - int(np.argmin(exact[::-1])) if not exact.all() else 0  # exact from here on
        axes.plot(windows, errors, color="#b8c9d9", linewidth=1)
        axes.plot(windows[first:], errors[first:], color=COLOURS[OURS], linewidth=1.2)
        if first < len(windows):
            label = "the 7 terms, no other, from here on" if i == 0 else None
            axes.plot(windows[first], errors[first], "o", color=COLOURS[OURS], markersize=6, label=label)
    axes.axhline(0.02, color="black", linewidth=0.8, linestyle="--")
    axes.text(windows[0], 0.0185, "2 %", va="top")
    axes.set(xscale="log", yscale="log", xlabel=f"rows streamed (windows of {system.window} samples)")
    axes.set(ylabel="largest relative error of a coefficient", title=f"Lorenz, 1 % noise: {len(path)} streams")
    axes.legend(loc="upper right", frameon=False)


def draw_terms(axes, system, clean, noise, seed):
    terms = Library(len(system.names), system.degree).terms
    found = find(OURS, system, observe(clean, noise, seed), noise)
    places = {term: k if k else -3 for k, term in enumerate(terms)}  # the constant stands apart
    wanted = [(places[term], i) for i, true in enumerate(system.truth) for term in true]
    got = [(places[term], i) for i, equation in enumerate(found) for term in equation.terms]
    axes.plot(*np.transpose(wanted), "o", color="none", markeredgecolor="black", markersize=10, label="true")
    axes.plot(*np.transpose(got), "o", color=COLOURS[OURS], markersize=5, label="found")
    n = len(system.names)
    for edge in (-1.0, n + 0.5):
        axes.axvline(edge, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xticks([-3, (n + 1) / 2, (n + len(terms)) / 2], ["1", "linear", "products of two"])
    axes.set_yticks(range(n), [f"d{name}/dt" for name in system.names])
    axes.tick_params(length=0)
    axes.set(xlim=(-5, len(terms) + 1), ylim=(n - 0.5, -1.8))
    axes.set_title(f"{system.name}, 1 % noise: {len(wanted)} true terms of {n * len(terms)}")
    axes.legend(loc="upper right", frameon=False, ncols=2)


def draw_shares(axes, systems, results):
    """Exact streams by noise level; one group of bars for each, systems side by side."""
    names = [method for method in COLOURS if any(r["method"] == method for r in results)]
    noises = [noise for noise in NOISES if any(r["noise"] == noise for r in results)]
    for s, system in enumerate(systems):
        for m, method in enumerate(names):
            for k, noise in enumerate(noises):
                part = [
                    r["exact"]
                    for r in results
                    if (r["system"], r["noise"], r["method"]) == (system.name, noise, method)
                ]
                place = s * (len(noises) + 0.7) + k + 0.22 * (m - (len(names) - 1) / 2)
                label = method if s == k == 0 else None
                axes.bar(place, sum(part), 0.2, color=COLOURS[method], label=label)
                axes.text(place, sum(part) + 0.12, str(sum(part)), ha="center", fontsize=6.5)
    places = [s * (len(noises) + 0.7) + k for s in range(len(systems)) for k in range(len(noises))]
    axes.set_xticks(places, [f"{100 * noise:g} %" for _ in systems for noise in noises])
    most = len(part)
    for s, system in enumerate(systems):
        axes.text(s * (len(noises) + 0.7) + (len(noises) - 1) / 2, -0.2 * most, system.name, ha="center")
    axes.set(ylim=(0, 1.35 * most), ylabel=f"streams, of {most}", title="All terms found and no other, by noise")
    axes.set_yticks(range(0, most + 1, max(most // 5, 1)))
    axes.legend(loc="upper center", frameon=False, ncols=2)


def draw(systems, clean, results, path, file):
    seed = results[0]["seed"]
    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(2, 2, figsize=(12.5, 9.5), layout="constrained")
        draw_attractor(axes[0, 0], systems[0], clean[systems[0].name][0], 0.01, seed)
        draw_history(axes[0, 1], systems[0], path)
        draw_terms(axes[1, 0], systems[1], clean[systems[1].name][0], 0.01, seed)
        draw_shares(axes[1, 1], systems, results)
        figure.savefig(file, dpi=110)
    plt.close(figure)
