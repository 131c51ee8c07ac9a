"""`python -m qmf.broker` is `qmf-broker`."""

import sys

from qmf.broker.cli import main

sys.exit(main())
