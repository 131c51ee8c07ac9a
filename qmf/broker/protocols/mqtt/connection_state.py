"""The states of a connection of MQTT.

::

    NEW --connect--> LOGGING_IN ------accept------> CONNECTED --authenticate again--> RENEWING
     '---connect with a method--> AUTHENTICATING --accept--^  ^--------accept------------'

While a client is LOGGING_IN, what it sends is not read. AUTHENTICATING and RENEWING: it answers challenges by AUTH.
Each state leads to CLOSED, by DISCONNECT of the client or by our own close. What is impossible in a state is a protocol
error of the client.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable
from qmf.broker.protocols.mqtt.codec.values import protocol_error


class MqttState(enum.Enum):
    """State of a connection."""

    NEW = "new"
    LOGGING_IN = "logging in"
    AUTHENTICATING = "authenticating"
    CONNECTED = "connected"
    RENEWING = "authenticating again"
    CLOSED = "closed"


class MqttTrigger(enum.Enum):
    """What changes the state of a connection, or is allowed in it."""

    CONNECT = "CONNECT"
    CONNECT_WITH_METHOD = "CONNECT with an authentication method"
    AUTH = "AUTH"
    RENEW = "AUTH that begins"
    PACKET = "another packet"
    DISCONNECT = "DISCONNECT"
    ACCEPT = "accept"  #: the client is who it says
    CLOSE = "close"  #: by us


_S, _T = MqttState, MqttTrigger

MQTT_TABLE: StateTable[MqttState, MqttTrigger, MqttState] = StateTable(
    "a connection of MQTT",
    {
        _S.NEW: {_T.CONNECT: _S.LOGGING_IN, _T.CONNECT_WITH_METHOD: _S.AUTHENTICATING, _T.CLOSE: _S.CLOSED},
        _S.LOGGING_IN: {_T.ACCEPT: _S.CONNECTED, _T.CLOSE: _S.CLOSED},
        _S.AUTHENTICATING: {
            _T.AUTH: _S.AUTHENTICATING,
            _T.DISCONNECT: _S.CLOSED,
            _T.ACCEPT: _S.CONNECTED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CONNECTED: {
            _T.PACKET: _S.CONNECTED,
            _T.RENEW: _S.RENEWING,
            _T.DISCONNECT: _S.CLOSED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.RENEWING: {
            _T.PACKET: _S.RENEWING,
            _T.AUTH: _S.RENEWING,
            _T.ACCEPT: _S.CONNECTED,
            _T.DISCONNECT: _S.CLOSED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CLOSED: {_T.CLOSE: _S.CLOSED},
    },
    error=protocol_error,
)
