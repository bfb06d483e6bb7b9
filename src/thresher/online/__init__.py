"""How an estimate moves: absorb rows, then K projected steps."""
