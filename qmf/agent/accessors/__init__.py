"""Attributes of managed objects: descriptors, and accessors of statistics, which programs call in their hot paths.

Rules of accessors:

* A change stores the value, sets the object's change mark and returns: it does not call the agent or read the time. An
  `Mma` sets no mark: the agent sees changes from the number of samples, which makes sampling quicker.
* High, low, minimum, maximum and average describe the publisher's interval. Only the publisher begins a new one
  (`_end_interval`); reading changes nothing.
* A value that leaves the range of its type, or the bounds of its schema, raises ConstraintError and changes nothing.
* No update is lost, in any thread. CPython with its global lock switches threads only where a function begins, at calls
  and at the end of a loop's round; in 3.11 the garbage collector may also run where a container is made. So none of
  these may be between the first read of an accessor's state and the last write to it; a test reads the byte code.
  (Lines traced in Python, as by a debugger, are such places too.) Without a global lock, each accessor gets a lock of
  its own (`locking`). A lock in all accessors would cost twice as much as all the rest.
"""
