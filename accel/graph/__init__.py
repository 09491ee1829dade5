"""The program as a graph: nodes and their templates, primitives, control edges, rules, and what rewrites it."""
