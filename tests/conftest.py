"""What all rooms' tests share."""

from __future__ import annotations

import signal

# A shell that runs the suite in the background has Ctrl-C ignored, and programs that tests start would inherit that:
# their own Ctrl-C would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
