"""How far a stream of rounds has come."""

# Places in `progress`: rounds done, samples that wait for the next, samples seen by the last.
N_ROUNDS, N_PENDING, N_AT_ROUND = 0, 1, 2
