"""How a run can end other than well."""

UNEXPECTED, USAGE, BAD_SOURCE, BAD_MODEL, NO_ROOM = 1, 2, 3, 4, 5


class OptionsError(Exception):
    """Options that do not go together, or not with the file."""


class InterruptedRunError(Exception):
    """Somebody stopped the run; everything is saved, as far as it was asked for."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.status = 128 + signal
