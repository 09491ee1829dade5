"""What may be done with a component, and the built-in table of classes that says so."""
