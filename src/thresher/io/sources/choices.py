"""What can be chosen about a source: formats, by the suffixes of files, and what becomes of missing values."""

from typing import Literal

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "numpy",
    ".npz": "numpy",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))

Policy = Literal["error", "skip", "mean"]
POLICIES: tuple[Policy, ...] = ("error", "skip", "mean")
# What becomes of rows whose time is before that of an earlier one.
LatePolicy = Literal["error", "skip"]
LATE_POLICIES: tuple[LatePolicy, ...] = ("error", "skip")
