"""Other people's frameworks, each behind an extra."""
