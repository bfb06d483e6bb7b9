"""The paper's experiments, one file for each figure and table, a runner and a report."""
