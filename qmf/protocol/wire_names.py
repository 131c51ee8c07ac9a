"""Names of properties, opcodes and content types on the wire that more than one module uses (QMF2.md 3.1, 4, 5)."""

from __future__ import annotations

OPCODE = "qmf.opcode"
AGENT = "qmf.agent"
CONTENT = "qmf.content"
METHOD = "method"
PARTIAL = "partial"
SUBSCRIPTION = "qmf.subscription"
SEQUENCE = "qmf.sequence"
EVENTS = "qmf.events"
SUPPRESSED = "qmf.suppressed"
MATCHED = "qmf.matched"
APP_ID = "x-amqp-0-10.app-id"
QMF2 = "qmf2"
#: Annotation with the ids of the brokers that a message has left by links between brokers, with commas in between.
TRACE = "x-qpid.trace"

MAP_TYPE = "amqp/map"
LIST_TYPE = "amqp/list"

LOCATE_REQUEST = "_agent_locate_request"
LOCATE_RESPONSE = "_agent_locate_response"
HEARTBEAT = "_agent_heartbeat_indication"
QUERY_REQUEST = "_query_request"
QUERY_RESPONSE = "_query_response"
METHOD_REQUEST = "_method_request"
METHOD_RESPONSE = "_method_response"
EXCEPTION = "_exception"
DATA_INDICATION = "_data_indication"
SUBSCRIBE_REQUEST = "_subscribe_request"
SUBSCRIBE_RESPONSE = "_subscribe_response"
SUBSCRIBE_REFRESH = "_subscribe_refresh_indication"
SUBSCRIBE_SHARE = "_subscribe_share_indication"
SUBSCRIBE_CANCEL = "_subscribe_cancel_indication"

# Values of `qmf.content`.
DATA = "_data"
EVENT = "_event"
SCHEMA = "_schema"
SCHEMA_ID = "_schema_id"
