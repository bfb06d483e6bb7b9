"""Trying all settings of a grid, and those beyond its ends as long as they are better."""

import json

# Where the best setting lies at an end of the values tried for one of these, the next value is tried, so many times.
SCALES = ("alpha", "c", "eta", "eta0", "ftrl_alpha", "l1", "learning_rate", "rate", "ridge", "s")
MOST_BEYOND = 3
# As a size, this means all features.
ALL = 10_000


def beyond(tried, best):
    """Settings next to the best one, where it lies at an end of what was tried."""
    for name in sorted(set(best) & set(SCALES)):
        values = sorted({setting[name] for setting in tried if setting[name] not in (ALL, "auto")})
        if len(values) < 2 or best[name] not in (values[0], values[-1]):
            continue
        last, before = (values[0], values[1]) if best[name] == values[0] else (values[-1], values[-2])
        following = float(f"{last * last / before:.2g}")
        yield best | {name: max(round(following), 1) if name == "s" else following}


def complete(settings, done, score, best):
    """Score all settings of a grid that are not `done`, and then those beyond its ends as long as they are better."""
    for setting in settings:
        if json.dumps(setting) not in done():
            score(setting)
    for _ in range(MOST_BEYOND):
        tried = [json.loads(key) for key in done()]
        new = [setting for setting in beyond(tried, best()) if setting not in tried]
        for setting in new:
            score(setting)
        if not new:
            break
