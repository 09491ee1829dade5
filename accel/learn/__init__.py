"""Traces in, p-graph out. Pure functions: no thread, no live object."""
