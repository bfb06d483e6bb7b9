"""
Why these features, and why so many?
====================================

The model chooses the number of features. The picture shows the criterion for every size. ``path()`` has the best model
of every size, so you can see what one feature more or less would change.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from thresher import SparseRegressor
from thresher.plotting import CriterionDisplay, PathDisplay

data = load_diabetes(as_frame=True)
X, y = data.data, data.target
model = SparseRegressor(selection="ebic").fit(X, y)
CriterionDisplay.from_estimator(model)
plt.show()

# %%
# The path: which feature enters at which size, and what that does to the others.

PathDisplay.from_estimator(model)
plt.show()

# %%
# Cross-validation chooses by the error on rows that were left out. The band is one standard error.

validated = SparseRegressor(selection="cv").fit(X, y)
CriterionDisplay.from_estimator(validated)
plt.show()

# %%
# The number of features can also be given.

for s in (1, 2, 3):
    print(s, SparseRegressor(s).fit(X, y).get_feature_names_out())
