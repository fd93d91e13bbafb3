"""Replay: folding history into tables without deciding, to see the past, to check the present, to take it along.

What is asked for is imported from its module: the command line loads this package before it knows which command it is.
"""
