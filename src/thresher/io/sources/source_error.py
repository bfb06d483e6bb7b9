"""What is wrong with a source, in one sentence."""


class SourceError(ValueError):
    """Rows cannot be read, or not be used: says which file and row, why, and what to do."""


class NoRowsError(SourceError):
    """A file has nothing in it, which does no harm among others."""


class ChangedSourceError(SourceError):
    """Rows that were read before are not what is there now."""
