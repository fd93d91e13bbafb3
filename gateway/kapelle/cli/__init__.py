"""The kapelle command.

commands/   one module for each command or group; `root.py` lists them
options/    the options that several commands share
text/       output for people and programs
checks/     the checks of `kapelle doctor`
"""
