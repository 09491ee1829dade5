"""What programs compute of values, and of several calls' values, by example."""
