"""The process that Accel lives in: its threads, forks and locks, the clock, and the time that nobody needs."""
