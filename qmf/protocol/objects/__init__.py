"""Objects and events as bytes: the only place that knows how they lie in a message.

An object comes in one of two ways (docs/protocol.md): *keyed*, a map with a name in front of each value, which every
peer understands, or as a *row* of a block, without names. Keyed objects of one class mostly have the same names and
types in the same order: that is their *shape*, and with the map around it their *form*. What reads and writes objects
is compiled for a class or a form. Everywhere else, objects are values of `qmf.protocol.values` and mappings of values
by name.
"""

from __future__ import annotations

from qmf.protocol.objects.columns import Column
from qmf.protocol.objects.decoder import ObjectDecoder
from qmf.protocol.objects.encoder import EventEncoder, ObjectEncoder, encode_block, encode_event, encode_object
from qmf.protocol.objects.keyed_encoding import Encode, Entries, entry_encoder, list_body
from qmf.protocol.objects.merged_values import as_dict, compare_bytes, detached_values, merge_values, shared_names
from qmf.protocol.objects.row_encoding import Lead, RowEncoder, SourcePart
from qmf.protocol.objects.row_objects import class_runs, make_object

__all__ = [
    "Column",
    "Encode",
    "Entries",
    "EventEncoder",
    "Lead",
    "ObjectDecoder",
    "ObjectEncoder",
    "RowEncoder",
    "SourcePart",
    "as_dict",
    "class_runs",
    "compare_bytes",
    "detached_values",
    "encode_block",
    "encode_event",
    "encode_object",
    "entry_encoder",
    "list_body",
    "make_object",
    "merge_values",
    "shared_names",
]
