"""Avro contracts, their generated types and their codec."""
