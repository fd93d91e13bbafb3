"""The commands of kapelle: one module for each command or group. No command imports another command."""
