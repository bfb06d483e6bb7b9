"""Reproduce the paper's figures and tables: ``python -m thresher.paper``."""

import sys

from thresher.paper.command import main

if __name__ == "__main__":
    sys.exit(main())
