"""The host agent: this machine as managed objects, read with psutil.

`qmf-host-agent` runs it as a program, `HostAgent` on an event loop, `EmbeddedHostAgent` in a thread. Its model is
`schemas/host.xml`. Each of the `collectors` reads one kind of thing in a worker thread and copies the reading into
managed objects on the event loop; `sampler` runs the collectors, `agent` runs the sampler at each interval.

It must not know: consoles, the broker, or how anything is encoded.
"""

from qmf.hostagent.agent import HostAgent
from qmf.hostagent.embedded import EmbeddedHostAgent
from qmf.hostagent.settings import ProcessSelection, SettingError, Settings, Show

__all__ = ["EmbeddedHostAgent", "HostAgent", "ProcessSelection", "SettingError", "Settings", "Show"]
