"""Files: models and summaries on disk, and where rows come from."""
