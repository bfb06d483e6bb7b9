"""The ``thresher`` command."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; the result is the exit status."""
    for name in ("pyarrow", "rich", "typer"):
        if find_spec(name) is None:
            print(f"The command needs {name}; install it with: pip install 'thresher[cli]'", file=sys.stderr)
            return 2
    from thresher.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
