"""What a received encoding may cost, whatever it claims.

Every size and count is checked against the bytes that are there, so a decoder's work and memory grow with the input
alone. Two claims are not covered by that, and have their own limit here.
"""

from __future__ import annotations

#: Levels of maps, lists, arrays and described values inside each other. QMF content needs six (a list of schemas, a
#: schema's methods, their arguments, ...), predicates rarely ten. Python allows about a thousand nested calls, and a
#: decoder uses two per level: 32 is far from both.
MAX_DEPTH = 32

#: Elements of an array whose element type takes no bytes (null, true, an empty list, ...). Four billion of them fit in
#: ten bytes, so their number needs its own bound. No QMF peer sends such arrays; a list of nulls costs a byte for each.
MAX_EMPTY_ELEMENTS = 16
