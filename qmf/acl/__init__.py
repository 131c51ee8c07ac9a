"""Access control lists, version 2, as qpidd reads them: the file, its rules, and what they decide and why.

Pure: text and values in, decisions out. Who asks is the embedded broker (`qmf/broker/access`); the tools ask as well,
without a broker. The manual of the broker has the format in its chapter 9; where today's qpidd reads files otherwise
than the manual describes, this room does as qpidd.
"""

from __future__ import annotations
