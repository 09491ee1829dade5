"""What a user runs on a program of his own, from a shell or a test: `accel check`, `accel bench`,
`accel explain`, `accel timeline`."""
