"""What an installed thresher must be able to do: fit, save, load, and the command. Run by checks/release.py."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import thresher

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 20))
y = 2.0 * X[:, 3] - X[:, 7] + rng.standard_normal(600)
model = thresher.SparseRegressor().partial_fit(X, y)
assert set(model.support_) >= {3, 7}, model.support_
model.save("m.thresher")
again = thresher.load("m.thresher")
assert (again.predict(X) == model.predict(X)).all()
assert abs(model.to_sklearn().predict(X) - model.predict(X)).max() < 1e-12
for other in (thresher.OnlineHardThresholding(2), thresher.ReducedRankRegressor(1)):
    assert other.fit(X, y).score(X, y) > 0.5, other
matrices = thresher.LowRankRegressor(1).fit(X.reshape(600, 4, 5), y)
assert matrices.coef_.shape == (4, 5)
cells = rng.integers(0, 8, (2, 200))
thresher.MatrixCompleter(1).fit(*cells, (cells[0] + 1.0) * (cells[1] + 1.0))

names = [f"x{j}" for j in range(20)]
np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",", header=",".join([*names, "y"]), comments="", fmt="%.17g")
command = str(Path(sys.executable).with_name("thresher"))
for arguments in (
    ["fit", "t.csv", "-t", "y", "-m", "c.thresher", "-q"],
    ["predict", "c.thresher", "t.csv", "-o", "p.csv", "-q"],
    ["show", "c.thresher", "--html", "c.html", "--plot", "c.png"],
):
    subprocess.run([command, *arguments], check=True, capture_output=True)
predicted = np.loadtxt("p.csv", skiprows=1)
np.testing.assert_allclose(predicted, thresher.load("c.thresher").predict(X), rtol=1e-12)
assert "What drives y" in Path("c.html").read_text()
assert "site-packages" in thresher.__file__, thresher.__file__
print(f"thresher {thresher.__version__}, NumPy {np.__version__}: works")
