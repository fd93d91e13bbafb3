"""The whitelisted members of every type, one table per family.

A table maps a name to a `Member`: the function, and for each number of arguments the types that it takes. Nothing is
reachable that is not in a table: there is no attribute access on Python objects anywhere.
"""
