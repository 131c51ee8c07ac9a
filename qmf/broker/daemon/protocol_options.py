"""Options of `qmf-broker` for protocols besides AMQP: MQTT, STOMP, and all of them over WebSocket."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from qmf._option_values import count, port, whole_number
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions


def add_protocol_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of the command line."""
    _add_mqtt_options(parser)
    _add_stomp_options(parser)
    _add_websocket_options(parser)


def _add_mqtt_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("MQTT").add_argument
    add(
        "--mqtt-port",
        type=port,
        metavar="PORT",
        help="speak MQTT 3.1.1 and 5 on this port too, usually 1883; 0 for any free one; without it, there is no MQTT. "
        "With --tls-cert, it is for TLS alone",
    )
    add(
        "--mqtt-tls-port",
        type=port,
        metavar="PORT",
        help="TLS for MQTT is on this port, usually 8883, and --mqtt-port is without",
    )
    _add_mqtt_limits(add)


def _add_mqtt_limits(add: Callable[..., object]) -> None:
    defaults = MqttOptions()
    add(
        "--mqtt-max-packet-size",
        type=count,
        default=defaults.max_packet,
        metavar="BYTES",
        help="the largest packet of MQTT that is taken (%(default)s)",
    )
    add(
        "--mqtt-receive-maximum",
        type=count,
        default=defaults.receive_maximum,
        metavar="N",
        help="messages with QoS 1 and 2 that a client may have sent without an answer (%(default)s)",
    )
    add(
        "--mqtt-topic-aliases",
        type=whole_number,
        default=defaults.topic_aliases,
        metavar="N",
        help="topic aliases of one connection in each direction (%(default)s)",
    )
    add(
        "--mqtt-max-keep-alive",
        type=count,
        metavar="SECONDS",
        help="the longest keep-alive of clients of MQTT 5, also of those that ask for none (any)",
    )
    add(
        "--mqtt-max-session-expiry",
        type=whole_number,
        default=defaults.max_session_expiry,
        metavar="SECONDS",
        help="time for which sessions are kept at most; 4294967295 for ever (%(default)s)",
    )
    add(
        "--mqtt-max-subscriptions",
        type=count,
        default=defaults.max_subscriptions,
        metavar="N",
        help="subscriptions of one session (%(default)s)",
    )
    add(
        "--mqtt-sys-interval",
        type=whole_number,
        default=defaults.sys_interval,
        metavar="SECONDS",
        help="publish the topics below $SYS so often, while somebody is subscribed; 0 for no such topics (%(default)s)",
    )


def _add_stomp_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("STOMP").add_argument
    defaults = StompOptions()
    add(
        "--stomp-port",
        type=port,
        metavar="PORT",
        help="speak STOMP 1.0 to 1.2 on this port too, usually 61613; 0 for any free one. With --tls-cert, it is for "
        "TLS alone",
    )
    add(
        "--stomp-max-frame-size",
        type=count,
        default=defaults.max_frame,
        metavar="BYTES",
        help="the largest frame of STOMP that is taken (%(default)s)",
    )
    add(
        "--stomp-heartbeat",
        type=whole_number,
        default=defaults.heartbeat,
        metavar="MILLISECONDS",
        help="between heart-beats of STOMP, which a client may have make longer; 0 for none (%(default)s)",
    )


def _add_websocket_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("WebSocket").add_argument
    add(
        "--ws-port",
        type=port,
        metavar="PORT",
        help="speak AMQP over WebSocket on this port, and MQTT and STOMP where they have ports; 0 for any free one. "
        "With --tls-cert, it is for TLS alone (wss://)",
    )
    add(
        "--ws-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin connect, such as https://mq.example; may be repeated. Without it, only programs "
        "that are no browsers may",
    )
