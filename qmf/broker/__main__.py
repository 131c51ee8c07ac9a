"""`python -m qmf.broker` is `qmf-broker`."""

import sys

from qmf.broker.daemon.cli import main

sys.exit(main())
