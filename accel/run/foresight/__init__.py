"""What a run is expected to demand, and which of it may be issued."""
