"""The command line tools of Apache qpidd under their names, for qpidd and for the embedded broker."""
