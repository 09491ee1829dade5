"""What Accel is told of LangGraph and LangChain, without importing them."""

from __future__ import annotations

from accel.frameworks import Framework

_PARTS = "Declare the models, stores, tools and clients that it calls."
_NO_CALLS = "Leave it out: it makes no calls."

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
    supports=(("langgraph", "1.1", "1.3"), ("langchain-core", "1.7", "2")),
    instead=(
        ("langgraph.graph.state", "StateGraph", "Compile it first: accelerate(builder.compile())"),
        ("langgraph.func", "_TaskFunction", "Accelerate the @entrypoint that calls it; its tasks are seen."),
    ),
    no_components=(
        ("langgraph.pregel", "Pregel", _PARTS),
        ("langgraph.graph.state", "StateGraph", _PARTS),
        ("langgraph.func", "_TaskFunction", "Declare its function: task(accel.pure(f))"),
        ("langchain_core.runnables.base", "RunnableSequence", _PARTS),
        ("langchain_core.runnables.base", "RunnableParallel", _PARTS),
        ("langchain_core.runnables.base", "RunnableLambda", "Declare its function: RunnableLambda(accel.pure(f))"),
        ("langchain_core.runnables.base", "RunnableBinding", "Declare what it binds, which is its field `bound`."),
        ("langchain_core.prompts.base", "BasePromptTemplate", _NO_CALLS),
        ("langchain_core.documents.base", "Document", _NO_CALLS),
        ("langchain_core.messages.base", "BaseMessage", _NO_CALLS),
    ),
)
