"""What the tests, the proofs and the benchmarks stand on: a real broker, and a proxy that breaks the way to it."""
