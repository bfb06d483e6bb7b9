"""How sure an estimate is, and what could be wrong with it."""
