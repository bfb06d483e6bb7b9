"""All subcommands, and what becomes of their errors."""

import contextlib
import os
import sys
import warnings
from typing import Any

import typer

from thresher._utils.printable import printable
from thresher._version import __version__
from thresher.cli import accumulate, demo, diagnose, fit, merge, predict, show
from thresher.cli.errors import BAD_MODEL, BAD_SOURCE, NO_ROOM, UNEXPECTED, USAGE, InterruptedRunError, OptionsError
from thresher.io.sources.source_error import SourceError

ABOUT = """Sparse linear models of rows that stream in from files and pipes.

[bold]thresher fit data.parquet --target y --model m.thresher[/bold] reads the rows once, keeps the model in
m.thresher, and shows which columns matter. It can be stopped at any moment: the same command with
[bold]--resume[/bold] continues at the right row.

Exit status: 0 done, 1 something unexpected, 2 wrong options, 3 rows that cannot be read or used, or have
changed, 4 a model file that cannot be used, 5 no room to write, 130 or 143 interrupted, with everything
saved. [bold]--debug[/bold], anywhere, shows where an error comes from.
"""


def flowing(text: str) -> str:
    """Paragraphs without line ends of their own, so that they fill whatever width there is."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


app = typer.Typer(
    name="thresher", help=flowing(ABOUT), rich_markup_mode="rich", pretty_exceptions_enable=False, no_args_is_help=True
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"thresher {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None: ...


for module in (fit, predict, show, diagnose, accumulate, merge, demo):
    app.command(
        module.__name__.rpartition(".")[2],
        help=flowing(module.HELP),
        rich_help_panel=module.PANEL,
    )(module.command)


def run(arguments: list[str]) -> int:
    """Run the command; one sentence for whatever goes wrong, and a status that says what kind of thing it was."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    warnings.showwarning = _show_warning
    # What happens to a file is told each time it happens.
    warnings.filterwarnings("always", category=UserWarning, module=r"thresher\.(cli|io)\.")
    try:
        result = app(arguments, prog_name="thresher", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except InterruptedRunError as stop:
        print(printable(str(stop)), file=sys.stderr)
        return stop.status
    except Exception as error:
        if debug:
            raise
        status, message = _explained(error)
        print(printable(message), file=sys.stderr)
        return status
    if result == 130:  # typer says nothing
        print("Interrupted.", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _explained(error: Exception) -> tuple[int, str]:
    from thresher.io.checkpoint import CheckpointError  # heavy, and not needed for help

    match error:
        case _ if hasattr(error, "format_message"):  # typer's own, wherever it takes them from
            context = getattr(error, "ctx", None)
            hint = f" Try '{context.command_path} --help'." if context is not None else ""
            return USAGE, f"thresher: {error.format_message()}{hint}"
        case OptionsError():
            return USAGE, f"thresher: {error}"
        case SourceError():
            return BAD_SOURCE, f"thresher: {error}"
        case CheckpointError():
            return BAD_MODEL, f"thresher: {error}"
        case FileNotFoundError():
            return BAD_MODEL, f"thresher: {error.filename} does not exist."
        case OSError():
            return NO_ROOM, f"thresher: {error.filename or 'the disk'}: {error.strerror or error}."
        case ImportError() | ValueError() | TypeError():
            return UNEXPECTED, f"thresher: {error}"
    return UNEXPECTED, f"thresher: {type(error).__name__}: {error} (--debug shows more)"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(printable(f"thresher: note: {message}"), file=sys.stderr)
