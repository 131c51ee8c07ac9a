"""Audit: calls, events, the history of properties, the lifetimes of objects, and the availability of agents.

Five tables, made in two steps by SQL of DuckDB. `parts` makes *parts* from rows of a lake: partial aggregates that can
be merged in any order, even repeatedly, with the same result. The tables (`calls`, `history`, `lives`, `availability`,
and the events themselves) are made from all parts by functions that read nothing else. A batch makes the parts of the
whole lake; a stream keeps its parts and adds those of new files. So both give the same tables, whatever arrives late or
is read again.

`state` keeps parts and makes tables in a connection, `tables` has the map and the reduces, `job` and `stream` are the
work of the command.
"""

from __future__ import annotations
