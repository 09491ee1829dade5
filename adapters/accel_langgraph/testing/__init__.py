"""For tests of one's own graphs: `pytest -p accel_langgraph.testing.plugin --accel-differential PATH`."""
