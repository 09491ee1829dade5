"""What a program does, step by step, in words and as drawings."""
