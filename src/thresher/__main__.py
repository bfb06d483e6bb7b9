"""So that ``python -m thresher`` is the command."""

import sys

from thresher.cli import main

sys.exit(main())
