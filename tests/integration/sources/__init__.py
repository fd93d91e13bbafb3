"""An engine that takes signals in, and the processes that bring them."""
