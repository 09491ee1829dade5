"""What Accel is told of LangGraph and LangChain, without importing them."""

from __future__ import annotations

from accel.frameworks import Framework

FRAMEWORK = Framework(
    "LangGraph",
    "langgraph",
    "a compiled LangGraph graph (StateGraph(...).compile()), a LangChain chain",
    (("langgraph.pregel", "Pregel"), ("langchain_core.runnables", "Runnable")),
    adapter="accel_langgraph.graph",
    packages=("langgraph", "langchain_core"),
    families=("langchain", "langgraph", "langsmith"),
    boundaries=("/langgraph/_internal/_runnable.py", "/accel_langgraph/chains.py"),
    programs="accel_langgraph.programs",
)
