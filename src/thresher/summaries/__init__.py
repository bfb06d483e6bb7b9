"""What a stream leaves behind: mergeable values."""
