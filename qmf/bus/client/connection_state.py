"""The states of a client's connection as a table.

::

    CONNECTING --transport connected--> OPENING --opened--> OPEN --drain--> DRAINING --close--> CLOSING
                                           |                 |                 |
                                         failed            failed            failed
                                           v                 v                 v
                                        REFUSED           BROKEN            BROKEN

`close` leads from every state with a transport to CLOSING, from CONNECTING to ENDED. When the transport is
disconnected, every state ends in ENDED. A connection is used once: nothing leads out of ENDED.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable


class BusConnectionState(enum.Enum):
    """State of a client's connection."""

    CONNECTING = "connecting"  #: TCP and TLS handshakes
    OPENING = "opening"  #: the transport is connected; SASL and AMQP handshakes
    OPEN = "open"
    DRAINING = "draining"  #: `close` waits for the outcomes of messages
    CLOSING = "closing"  #: our close was sent, or the transport aborted
    REFUSED = "refused"  #: the broker ended the connection, or it failed, before it was open
    BROKEN = "broken"  #: the broker ended the connection, or it failed, after it was open
    ENDED = "ended"  #: the transport is disconnected


class BusConnectionTrigger(enum.Enum):
    """What changes the state of a client's connection."""

    TRANSPORT_CONNECTED = "transport connected"
    OPENED = "opened"  #: by the broker
    FAILED = "failed"  #: closed by the broker, invalid frames, no heartbeat, or authentication failed
    DRAIN = "drain"
    CLOSE = "close"
    DISCONNECTED = "disconnected"  #: the transport


_State, _Trigger = BusConnectionState, BusConnectionTrigger

TRANSITIONS = StateTable(
    "a connection",
    {
        _State.CONNECTING: {
            _Trigger.TRANSPORT_CONNECTED: _State.OPENING,
            _Trigger.CLOSE: _State.ENDED,
        },
        _State.OPENING: {
            _Trigger.OPENED: _State.OPEN,
            _Trigger.FAILED: _State.REFUSED,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.OPEN: {
            _Trigger.FAILED: _State.BROKEN,
            _Trigger.DRAIN: _State.DRAINING,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.DRAINING: {
            _Trigger.FAILED: _State.BROKEN,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.CLOSING: {
            # The broker's answer to our close counts as a failure, too.
            _Trigger.FAILED: _State.CLOSING,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.REFUSED: {
            _Trigger.FAILED: _State.REFUSED,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.BROKEN: {
            _Trigger.FAILED: _State.BROKEN,
            _Trigger.CLOSE: _State.CLOSING,
            _Trigger.DISCONNECTED: _State.ENDED,
        },
        _State.ENDED: {
            _Trigger.CLOSE: _State.ENDED,
        },
    },
)
