"""
Which measurements drive diabetes?
==================================

The data are 442 patients with ten measurements each, installed with scikit-learn. The response is the progression of
the disease one year later. Columns are scaled to the same variance. Patients arrive one after
another. The model is up to date after each of them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from thresher import SparseRegressor
from thresher.plotting import CoefficientsDisplay

data = load_diabetes(as_frame=True)
X, y = data.data, data.target

model = SparseRegressor()
for start in range(0, len(X), 20):  # twenty patients a day
    model.partial_fit(X[start : start + 20], y[start : start + 20])
model.finish()

# %%
# A blood value (``s5``), the body mass index (``bmi``) and the blood pressure (``bp``) matter most. The last column of
# the table compares them.

print(model.summary())

# %%
# The coefficients after each day. Few patients give uncertain coefficients.

CoefficientsDisplay.from_estimator(model)
plt.show()
