"""Small programs in the styles of public LangGraph code."""
