"""What Accel knows about a program over all its runs: traces, graph, components, bounds; saved and told."""
