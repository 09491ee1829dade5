"""What inputs are made of: known values, the literal text between them, and loops over lists."""
