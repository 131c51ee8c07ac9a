"""Objects and events as bytes: the only place that knows how they lie in a message.

An object comes in one of two forms (docs/protocol.md): *keyed*, a map with a name in front of each value, which every
peer understands, or as a *row* of a block, without names. Keyed objects of one class mostly have the same names and
types in the same order: that is their *shape*. Functions that read and write these forms are compiled for a class.
Everywhere else, objects are values of `qmf.protocol.values` and mappings of values by name.
"""
