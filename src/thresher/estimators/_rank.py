"""The rank that a user asks for, checked against the matrix."""

# Used for any matrix, so it may exceed the sides of a small one.
DEFAULT_RANK = 5


def checked_rank(rank: int, side: int) -> int:
    """The rank to use for a matrix whose smaller side is `side`; an error if it asks for more."""
    if rank > side and rank != DEFAULT_RANK:
        raise ValueError(f"rank={rank} exceeds the smaller side of the matrix; use at most {side}.")
    return int(min(rank, side))
