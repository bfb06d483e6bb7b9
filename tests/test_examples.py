"""The examples do what their pages say, without the packages they compare with."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in [name for name in sys.modules if name.startswith("dynamics")]:
        del sys.modules[name]


@pytest.mark.usefixtures("examples")
class TestDynamics:
    def test_lorenz_is_found_from_noisy_samples(self):
        from dynamics_learner import Dynamics
        from dynamics_systems import lorenz, observe, trajectories

        # Twenty runs of 30 time units, one after another, are integrated faster than one of 600.
        system, seeds = lorenz(), range(700, 720)
        model = Dynamics(3, 5, system.dt, system.window)
        assert len(model.library.terms) == 56
        for seed, clean in zip(seeds, trajectories(system, seeds, 30.0), strict=True):
            samples = observe(clean, 0.01, seed)
            np.testing.assert_allclose((samples - clean).std(axis=0), 0.01 * clean.std(axis=0), rtol=0.05)
            model.feed(samples)

        found = [equation.as_dict() for equation in model.equations()]
        # dx/dt = 10 (y - x), dy/dt = x (28 - z) - y, dz/dt = x y - 8/3 z
        assert found[0] == {(0,): pytest.approx(-10.0, rel=0.02), (1,): pytest.approx(10.0, rel=0.02)}
        assert found[1] == {
            (0,): pytest.approx(28.0, rel=0.02),
            (1,): pytest.approx(-1.0, rel=0.02),
            (0, 2): pytest.approx(-1.0, rel=0.02),
        }
        assert found[2] == {(2,): pytest.approx(-8.0 / 3.0, rel=0.02), (0, 1): pytest.approx(1.0, rel=0.02)}

    def test_other_units_have_other_coefficients(self):
        from dynamics_systems import in_units, lorenz

        # z' = z / 10 and so on: dz'/dt = (x y - 8/3 z) / 10 = 10 x' y' - 8/3 z'
        system = in_units(lorenz(), 0.1)
        assert system.truth[2] == {(2,): pytest.approx(-8.0 / 3.0), (0, 1): pytest.approx(10.0)}
        np.testing.assert_allclose(
            system.rate(np.array([0.1, 0.2, 0.3])), 0.1 * lorenz().rate(np.array([1.0, 2.0, 3.0]))
        )

    def test_memory_does_not_grow_with_the_stream(self):
        from dynamics_learner import Dynamics

        samples = np.random.default_rng(0).standard_normal((24_000, 2))
        model = Dynamics(2, 2, 0.01, 12)
        sizes = [model.feed(part).state_bytes()[0] for part in np.split(samples, [1_000, 7_000])]
        assert sizes[0] == sizes[1] == sizes[2]
        assert model.models[0].n_samples_seen_ == 2_000  # parts of windows were kept for the next block

    def test_rows_are_the_weak_form_of_a_known_solution(self):
        from dynamics_learner import Dynamics

        # x = exp(t) has dx/dt = x: the responses equal the column of x, up to the quadrature.
        t = np.arange(0.0, 1.0, 0.01)
        model = Dynamics(1, 3, 0.01, 20)
        features, rates = model.rows(np.exp(t)[:, None])
        assert model.library.terms == [(), (0,), (0, 0), (0, 0, 0)]
        np.testing.assert_allclose(rates[:, 0], features[:, 1], rtol=1e-6)
        np.testing.assert_allclose(features[:, 0], 1.0, rtol=1e-12)
        assert features[0, 2] == pytest.approx(1.0 * np.exp(0.2), rel=0.01)  # x^2 at about the middle, t = 0.1
