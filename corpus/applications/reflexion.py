"""Reflexion: a draft with a reflection and searches as a tool call, the searches, and revisions with references."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field, ValidationError

SOURCE = "Reflexion tutorial of LangGraph (https://langchain-ai.github.io/langgraph/tutorials/reflexion/reflexion/)"
ASYNC = True
DOCUMENTS = [
    f"In {city} {fact}"
    for city in ("Lyon", "Oslo", "Bogota", "Utrecht", "Osaka", "Ljubljana")
    for fact in (
        "a third of the streets belongs to bicycles since the last election.",
        "buses are free on days with bad air, and ridership doubled on such days.",
        "the market hall is heated by the water of the sewers.",
        "shops deliver in the evening with small electric boats or carts.",
        "old tram depots became schools, and the rails are still in the yard.",
    )
]
INPUTS = [
    {"messages": [HumanMessage(question)]}
    for question in (
        "Why do cities give streets to bicycles?", "Does free transport on days with bad air help?",
        "Can sewers heat a town?", "How do goods get into a centre without lorries?",
        "What becomes of old tram depots?", "Which cities are good to grow old in?",
        "How useful are small electric boats?", "What makes people leave the car at home?",
        "Should shops deliver in the evening?", "What can a market hall do with waste heat?",
        "Do elections change the streets of a city?", "How does a school move into an old depot?",
    )
]  # fmt: skip
MAX_ITERATIONS = 3
MAX_ATTEMPTS = 3

ACTOR = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You are an expert researcher.\n\n1. {first_instruction}\n2. Reflect on your answer and criticize it. Be "
            "severe, so that it gets better.\n3. Recommend searches for information that improves the answer.",
        ),
        MessagesPlaceholder(variable_name="messages"),
        ("user", "Reflect on the user's original question and the actions so far. Respond with the {function_name} "
                 "function."),
    ]
)  # fmt: skip
REVISE = """Revise your previous answer with the new information. Use the critique to add what was missing and to take
out what is superfluous, and add numbered citations with a list of references below."""


class Reflection(BaseModel):
    missing: str = Field(description="Critique of what is missing")
    superfluous: str = Field(description="Critique of what is superfluous")


class AnswerQuestion(BaseModel):
    """Answer the question, reflect on the answer, and give searches to improve it."""

    answer: str = Field(description="A detailed answer to the question")
    reflection: Reflection = Field(description="Your reflection on the first answer")
    search_queries: list[str] = Field(min_length=1, max_length=3, description="Searches for improvements")


class ReviseAnswer(AnswerQuestion):
    """Revise your answer to the question. Give an answer, a reflection, references, and searches to improve it."""

    references: list[str] = Field(max_length=3, description="Citations that motivate the updated answer")


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class ResponderWithRetries:
    def __init__(self, runnable: Runnable[Any, Any], validator: PydanticToolsParser) -> None:
        self.runnable = runnable
        self.validator = validator

    async def respond(self, state: State) -> dict[str, Any]:
        messages = list(state["messages"])
        for _ in range(MAX_ATTEMPTS):
            response = await self.runnable.ainvoke({"messages": messages})
            try:
                self.validator.invoke(response)
                break
            except ValidationError as error:
                retry = f"{error!r}\n\nRespond by fixing all errors of validation."
                messages = [*messages, response, ToolMessage(retry, tool_call_id=response.tool_calls[0]["id"])]
        return {"messages": [response]}


def build(parts: Any) -> Any:
    llm = parts.llm.model_copy(update={"max_tokens": 700})
    first_responder = ResponderWithRetries(
        ACTOR.partial(
            first_instruction="Give a detailed answer of about 60 words.", function_name=AnswerQuestion.__name__
        )
        | llm.bind_tools(tools=[AnswerQuestion], tool_choice="AnswerQuestion"),
        PydanticToolsParser(tools=[AnswerQuestion]),
    )
    revisor = ResponderWithRetries(
        ACTOR.partial(first_instruction=REVISE, function_name=ReviseAnswer.__name__)
        | llm.bind_tools(tools=[ReviseAnswer], tool_choice="ReviseAnswer"),
        PydanticToolsParser(tools=[ReviseAnswer]),
    )

    async def run_queries(search_queries: list[str], **kwargs: Any) -> str:
        """Run the generated queries."""
        found = await asyncio.gather(*[parts.store.asimilarity_search(query, k=2) for query in search_queries])
        return json.dumps([[document.page_content for document in documents] for documents in found])

    tool_node = ToolNode(
        [
            StructuredTool.from_function(coroutine=run_queries, name=AnswerQuestion.__name__),
            StructuredTool.from_function(coroutine=run_queries, name=ReviseAnswer.__name__),
        ]
    )

    def event_loop(state: State) -> str:
        revisions = 0
        for message in reversed(state["messages"]):
            if message.type not in {"tool", "ai"}:
                break
            revisions += message.type == "tool"
        return END if revisions >= MAX_ITERATIONS else "execute_tools"

    builder = StateGraph(State)
    builder.add_node("draft", first_responder.respond)
    builder.add_node("execute_tools", tool_node)
    builder.add_node("revise", revisor.respond)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "execute_tools")
    builder.add_edge("execute_tools", "revise")
    builder.add_conditional_edges("revise", event_loop, ["execute_tools", END])
    return builder.compile()
