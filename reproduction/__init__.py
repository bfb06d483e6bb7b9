"""The paper's experiments: every figure and table, a runner and a report. Run it with ``python -m reproduction``."""
