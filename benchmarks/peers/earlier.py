"""Medians of an earlier report, for methods that are not measured again."""

import csv
import json
from pathlib import Path

FILES = ("peers.csv", "real.csv")
WORDS = ("problem", "method", "estimates", "setting", "note")


def number(text):
    """A number if it is one; an empty cell stays empty."""
    if text == "":
        return ""
    value = float(text)
    return int(value) if value.is_integer() and "." not in text and "e" not in text else value


def read(directory, settings):
    """Rows of the report in a directory: those of baselines whose setting is still the same.

    Parameters
    ----------
    directory : Path
    settings : dict
        (problem, method) -> setting, of everything that belongs to the comparison.
    """
    found = []
    for name in FILES:
        with Path(directory, name).open(newline="") as file:
            for row in csv.DictReader(file):
                key = row["problem"], row["method"]
                if key not in settings or key[1].startswith("thresher"):
                    continue
                if json.loads(row["setting"]) == json.loads(json.dumps(settings[key])):
                    kept = {k: v if k in WORDS else number(v) for k, v in row.items() if k not in ("grows", "measured")}
                    found.append({"rows": 0} | kept)
    return found
