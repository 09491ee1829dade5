"""What of a program's code and texts is its own, and what its functions read and change."""
