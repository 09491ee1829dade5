"""What the program's own calls do: are recorded, find what answers them, or run themselves."""
