"""Whether following a program pays, and whether a call that may be in vain does: counts over all runs."""
