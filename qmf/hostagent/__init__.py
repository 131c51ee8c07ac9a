"""The host agent: this machine as managed objects, read with psutil.

`qmf-host-agent` runs it as a program, `HostAgent` on an event loop, `EmbeddedHostAgent` in a thread. Its model is
`schemas/host.xml`. One collector per kind of thing reads psutil in a worker thread and brings the reading into objects
on the event loop (`collector`); `sampler` runs them, `agent` drives it by the clock.

It must not know: consoles, the broker, or how anything is encoded.
"""

from qmf.hostagent.agent import HostAgent
from qmf.hostagent.embedded import EmbeddedHostAgent
from qmf.hostagent.settings import Selection, SettingError, Settings, Show

__all__ = ["EmbeddedHostAgent", "HostAgent", "Selection", "SettingError", "Settings", "Show"]
