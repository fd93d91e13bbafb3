"""The proof of signals: exactly one start for each combination, whatever happens to the processes and the broker."""
