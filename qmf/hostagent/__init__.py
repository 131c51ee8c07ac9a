"""The host agent: this machine as managed objects, read with psutil.

`qmf-host-agent` runs it as a program, `HostAgent` on an event loop, `EmbeddedHostAgent` in a thread. Its model is
`schemas/host.xml`. Each of the `collectors` reads one kind of thing in a worker thread and copies the reading into
managed objects on the event loop; `sampler` runs the collectors, `agent` runs the sampler at each interval.

It must not know: consoles, the broker, or how anything is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.hostagent.agent import HostAgent
    from qmf.hostagent.embedded import EmbeddedHostAgent
    from qmf.hostagent.settings import ProcessSelection, SettingError, Settings, Show
else:
    # `qmf-host-agent --help` needs neither psutil nor an agent.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.hostagent.agent": "HostAgent",
            "qmf.hostagent.embedded": "EmbeddedHostAgent",
            "qmf.hostagent.settings": "ProcessSelection SettingError Settings Show",
        },
    )

__all__ = ["EmbeddedHostAgent", "HostAgent", "ProcessSelection", "SettingError", "Settings", "Show"]
