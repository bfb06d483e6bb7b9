"""Vowpal Wabbit from Python: its default online rule with --l1, and --ftrl with --l1."""

from time import process_time

import numpy as np
from learner import Learner, Method, standardised
from vowpalwabbit import Workspace

SHORT = 0.01


class Vowpal(Learner):
    """One example per row, in Vowpal Wabbit's text format."""

    def __init__(self, d, arguments):
        self.d, self.pattern = d, "| " + " ".join(f"{j}:%.9g" for j in range(d))
        self.model = Workspace(f"--quiet --noconstant -b {max(18, int(np.ceil(np.log2(d))))} {arguments}")

    def learn(self, X, y):
        for row, response in zip(X.tolist(), y.tolist(), strict=True):
            start = process_time()
            line = f"{response:.9g} {self.pattern % tuple(row)}"
            self.seconds_formatting += process_time() - start
            self.model.learn(line)

    def estimate(self):
        # Weights are truncated only when they are used, so they are read from predictions; these are clipped to the
        # range of the responses, so the rows that ask for them are short.
        self.coef = np.array([self.model.predict(f"| {j}:{SHORT}") for j in range(self.d)]) / SHORT

    def predict(self, X):
        start = process_time()
        lines = [self.pattern % tuple(row) for row in X.tolist()]
        self.seconds_formatting += process_time() - start
        return np.array([self.model.predict(line) for line in lines])

    def state_bytes(self):
        # Weights and what the rule keeps beside them, four bytes each.
        return 4 * 4 * self.d


def maker(rule):
    def make(d, real=False, **setting):
        arguments = " ".join(f"--{name} {value}" for name, value in setting.items())
        return standardised(Vowpal(d, f"{rule} {arguments}"), d, real)

    return make


METHODS = [
    Method(
        "Vowpal Wabbit l1",
        maker(""),
        {"l1": (1e-7, 1e-6, 1e-5, 1e-4), "learning_rate": (0.1, 0.5)},
        note="without making the text line, which is listed apart",
        slow=True,
        real_grid={"l1": (1e-8, 1e-7, 1e-6, 1e-5), "learning_rate": (0.1, 0.5)},
    ),
    Method(
        "Vowpal Wabbit FTRL",
        maker("--ftrl"),
        {"l1": (100.0, 200.0, 300.0), "ftrl_alpha": (0.05, 0.1)},
        note="without making the text line, which is listed apart",
        slow=True,
        real_grid={"l1": (1.0, 10.0, 100.0), "ftrl_alpha": (0.005, 0.02, 0.1)},
    ),
]
