"""
A few wavelengths of a spectrum
===============================

Spectrometers measure absorbance at hundreds of wavelengths. Neighbouring wavelengths are almost the same, so a lasso
spreads its weight over many of them. A cheap sensor needs a few. Here the concentration of a substance is predicted
from simulated spectra with 300 wavelengths. The substance has two peaks; three other substances overlap with them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from thresher import SparseRegressor

rng = np.random.default_rng(0)
wavelengths = np.linspace(850, 1050, 300)


def peak(centre, width):
    return np.exp(-(((wavelengths - centre) / width) ** 2))


pure = np.array([peak(905, 7) + 0.6 * peak(990, 9), peak(880, 25), peak(960, 30), peak(1020, 20)])
concentrations = rng.uniform(0.2, 1.0, (2000, 4))
spectra = concentrations @ pure + 0.02 * rng.standard_normal((2000, 300))
y = concentrations[:, 0] + 0.05 * rng.standard_normal(2000)  # as the laboratory measures it

# %%
# Both see the same 1500 spectra. They are tested on 500 more.

model = SparseRegressor().fit(spectra[:1500], y[:1500])
lasso = LassoCV(max_iter=10_000).fit(spectra[:1500], y[:1500])
for name, one in {"SparseRegressor": model, "LassoCV": lasso}.items():
    print(f"{name:16} {np.count_nonzero(one.coef_):3} wavelengths, R2 {one.score(spectra[1500:], y[1500:]):.4f}")

# %%
# The wavelengths are at the peaks of the substance, and where the others can be subtracted.

fig, (above, below) = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
above.plot(wavelengths, pure[0], color="#2166ac", label="the substance")
above.plot(wavelengths, pure[1:].T, color="#9aa5b1", linewidth=1)
above.set_ylabel("absorbance")
above.legend()
below.axhline(0, color="#9aa5b1", linewidth=0.8)
below.plot(wavelengths, lasso.coef_, color="#d6604d", linewidth=1, label="LassoCV")
below.vlines(wavelengths[model.support_], 0, model.coef_[model.support_], color="#2166ac", label="SparseRegressor")
below.set_xlabel("wavelength (nm)")
below.set_ylabel("coefficient")
below.legend()
plt.show()
