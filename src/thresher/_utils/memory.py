"""Whether a large array would fit, asked before it is allocated."""

import os
from pathlib import Path

# Less than this is not asked for: the answer takes longer than the allocation.
SMALL = 2**20


def available_bytes() -> int | None:
    """Memory that can be had without swapping, or None where the system does not tell."""
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        try:
            available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None
    try:  # a container may allow less than the machine has
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        for line in (group / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):  # page cache that is given back on demand
                used -= int(line.split()[1])
        available = min(available, max(limit - used, 0))
    except (OSError, ValueError):
        pass
    return available


def require_bytes(needed: int, what: str, remedy: str) -> None:
    """Raise MemoryError, naming both numbers and the remedy, if `needed` is not available."""
    free = available_bytes() if needed >= SMALL else None
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} needs {needed:,} bytes ({needed / 2**30:.1f} GiB) "
            f"and {free:,} bytes ({free / 2**30:.1f} GiB) are free. {remedy}"
        )
