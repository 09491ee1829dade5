"""What was seen of a run: its calls and nodes in order, where they come from, and what came in beside the input."""
