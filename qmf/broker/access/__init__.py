"""Access control of a broker by a file of rules: `qmf.acl` decides; here the broker's questions are put to it."""

from __future__ import annotations
