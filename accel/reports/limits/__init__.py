"""How fast a run could have been: the best schedule known, and the run with one rule lifted."""
