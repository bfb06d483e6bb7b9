"""One file per kind of method, each with its list of METHODS; `registry.py` has them all."""
