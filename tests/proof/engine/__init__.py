"""The proof of the engine: workflows on a real broker, under kills, and checkers that know nothing of the engine."""
