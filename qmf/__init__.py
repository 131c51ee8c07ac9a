"""QMF (Qpid Management Framework) for Python 3.

Packages: `qmf.schema` (what a model is), `qmf.codec` (AMQP encodings), `qmf.protocol` (QMF messages as values),
`qmf.bus` (moving messages), `qmf.agent` (publishing objects), `qmf.console` (reading and following them),
`qmf.broker` (the embedded broker). Importing any of them starts nothing.
"""

from qmf._version import __version__

__all__ = ["__version__"]
