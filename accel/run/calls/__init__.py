"""The calls of a run: states, keys, and which of them answers a demand."""
