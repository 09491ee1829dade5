"""What goes over the network: where a component's data goes, which way, and what turns calls away."""
