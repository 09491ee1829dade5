"""Runs as pictures: bars over time, for terminals, pages and trace viewers."""
