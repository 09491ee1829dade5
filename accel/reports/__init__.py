"""What happened, how fast it could have been, and what would gain more."""
