"""Who waits for whom: for results and places, and that no cycle of waiting exists."""
