"""Values for people: what the shell, the web console, reports and alerts show of numbers, texts and classes.

`units` makes text of numbers with units, `times` of durations and points in time; both read what users write. `text`
makes texts of others safe to show, `objects` is what is shown of objects, `names` tells how they are called, `agents`
how agents are, `fields` what the values of objects are, `counters` which of them only grow, `columns` which
statistics of a class matter, `broker_fields` what operators look for of brokers' classes, `references` to which
objects others refer, `events` what is shown of events, which `event_filter` filters, `arguments` reads those of
methods, `rates` by how much a counter grew, `internal` which objects are those of agents, consoles and tools
themselves; `cells` is what values mean, `value_cells` makes these by the schema, `formatting` makes text of them;
`conditions` is the language in which people say which objects they want. Knows no terminal, no browser, no console.
"""

from __future__ import annotations
