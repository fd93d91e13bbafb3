"""The kit of relays, on a real broker."""
