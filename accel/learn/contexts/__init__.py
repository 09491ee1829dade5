"""For whom, and in which contexts, a program was seen to do what it does."""
