"""`python -m tsallax` is the `tsallax` command."""

import sys

from tsallax.cli import main

sys.exit(main())
