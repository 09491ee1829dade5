"""What lives with an accelerated object, and one run of it: demands, early calls, forecasts, and who waits for whom."""
