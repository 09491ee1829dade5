"""When two components are the same, and what tells that they still are."""
