"""What a component is: who vouches for it, when two are the same, where data goes, how its methods are seen."""
