"""Measurements of Kapelle beside its peers, on a real broker."""
