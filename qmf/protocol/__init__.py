"""QMF messages as values: QMFv2 complete, and the part of QMFv1 that finds schemas (QMF2.md).

Sans-IO: bytes and values in, values and bytes out. Knows no sockets, no event loop and no clock; who receives what, and
when, is the business of `qmf.agent` and `qmf.console`. Whatever bytes arrive, `decode` returns a message or raises
`DecodeError` or `ProtocolError`.
"""

from __future__ import annotations

from qmf.protocol.addresses import (
    AMQ_DIRECT,
    BROKER,
    CONSOLE_BINDING,
    DATA_BINDING,
    EVENT_BINDING,
    HEARTBEAT_BINDING,
    LOCATE_KEY,
    V1_EXCHANGE,
    console_key,
    data_key,
    direct_exchange,
    event_key,
    heartbeat_key,
    parse_reply_to,
    topic_exchange,
)
from qmf.protocol.coerce import from_wire, to_wire
from qmf.protocol.contents import (
    Content,
    Envelope,
    ErrorCode,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MethodRequest,
    MethodResponse,
    ObjectsIndication,
    ObjectsResponse,
    Predicate,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
)
from qmf.protocol.decode import decode
from qmf.protocol.encode import encode
from qmf.protocol.errors import ContentError, UnknownOpcode
from qmf.protocol.forms import BodyForm
from qmf.protocol.predicates import compile_predicate, matches, validate
from qmf.protocol.schemas import schema_from_map, schema_to_map
from qmf.protocol.v1 import (
    BrokerRequest,
    BrokerResponse,
    ClassesRequest,
    ClassResponse,
    CommandComplete,
    Frame,
    OpaqueFrame,
    PackageResponse,
    PackagesRequest,
    SchemaRequest,
    SchemaResponse,
    V1Message,
    decode_frames,
    encode_frames,
)
from qmf.protocol.values import AgentInfo, EventData, ObjectData, ObjectId

__all__ = [
    "AMQ_DIRECT",
    "BROKER",
    "CONSOLE_BINDING",
    "DATA_BINDING",
    "EVENT_BINDING",
    "HEARTBEAT_BINDING",
    "LOCATE_KEY",
    "V1_EXCHANGE",
    "AgentInfo",
    "BodyForm",
    "BrokerRequest",
    "BrokerResponse",
    "ClassResponse",
    "ClassesRequest",
    "CommandComplete",
    "Content",
    "ContentError",
    "Envelope",
    "ErrorCode",
    "EventData",
    "EventsIndication",
    "ExceptionResponse",
    "Frame",
    "Heartbeat",
    "LocateRequest",
    "LocateResponse",
    "MethodRequest",
    "MethodResponse",
    "ObjectData",
    "ObjectId",
    "ObjectsIndication",
    "ObjectsResponse",
    "OpaqueFrame",
    "PackageResponse",
    "PackagesRequest",
    "Predicate",
    "QueryRequest",
    "SchemaIdsResponse",
    "SchemaRequest",
    "SchemaResponse",
    "SchemasResponse",
    "UnknownOpcode",
    "V1Message",
    "What",
    "compile_predicate",
    "console_key",
    "data_key",
    "decode",
    "decode_frames",
    "direct_exchange",
    "encode",
    "encode_frames",
    "event_key",
    "from_wire",
    "heartbeat_key",
    "matches",
    "parse_reply_to",
    "schema_from_map",
    "schema_to_map",
    "to_wire",
    "topic_exchange",
    "validate",
]
