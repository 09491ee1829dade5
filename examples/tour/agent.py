"""An agent with tools, as LangGraph's quick start has it: the model calls tools until it can answer."""

from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

HANDBOOK = [
    "Boats that draw two metres wait for the spring tide.",
    "The slipway is closed while the meadow is flooded.",
    "The copper lantern is lit from dusk on, and in fog.",
    "Cargo is stored on the upper quay.",
]

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0)
embeddings = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
handbook = InMemoryVectorStore.from_texts(HANDBOOK, embeddings)


@tool
def search_handbook(query: str) -> str:
    """Search the harbour's handbook."""
    return "\n".join(document.page_content for document in handbook.similarity_search(query, k=2))


@tool
def high_water(port: str) -> str:
    """When high water is at a port."""
    return f"High water at {port} is at {6 + len(port) % 6}:40."


tools = [search_handbook, high_water]
llm_with_tools = llm.bind_tools(tools)


def chatbot(state: MessagesState) -> dict[str, Any]:
    system = SystemMessage("You help a harbour master. Use the tools before you answer.")
    return {"messages": [llm_with_tools.invoke([system, *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("chatbot", chatbot)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "chatbot")
builder.add_conditional_edges("chatbot", tools_condition)
builder.add_edge("tools", "chatbot")
graph = builder.compile()
