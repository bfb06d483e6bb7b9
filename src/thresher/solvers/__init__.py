"""From a summary to an estimate."""
