"""The proof of the runtime: small processors, a workload, faults, and checkers that know nothing of the runtime."""
