"""
Intervals for a report
======================

How sure is the model of each coefficient? The picture shows 95 % intervals of the kept features. The table goes
into a report: as text, as HTML, or as a data frame.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from thresher import SparseRegressor
from thresher.plotting import InclusionDisplay, IntervalsDisplay

data = load_diabetes(as_frame=True)
model = SparseRegressor().fit(data.data, data.target)

IntervalsDisplay.from_estimator(model, method="posterior")
plt.show()

# %%
# How likely does each feature matter at all?

InclusionDisplay.from_estimator(model)
plt.show()

# %%
# ``model.summary()`` is the whole table, with a diagnosis. ``to_frame()`` makes a data frame of it, which pandas can
# write to a spreadsheet or to HTML.

model.summary().to_frame().round(2)

# %%
# Intervals for other features too, by name. These are debiased: they also hold for features that were not kept.

print(model.confidence_intervals(features=["bmi", "bp", "age", "s1"]))
