"""The ``thresher`` command."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; the result is the exit status."""
    try:
        import pyarrow  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(f"The command needs {error.name}; install it with: pip install 'thresher[cli]'", file=sys.stderr)
        return 2
    from thresher.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
