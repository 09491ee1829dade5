"""Speech writer: every node makes the model that it wants by a factory, and each point of a speech gets an anecdote."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import StateGraph

from corpus.factories import init_chat_model

ASYNC = True
INPUTS = [
    {"occasion": occasion, "tone": tone}
    for occasion, tone in (
        ("the opening of a library", "warm"), ("a retirement after forty years", "funny"),
        ("the launch of a ferry", "solemn"), ("a wedding of two cooks", "cheerful"),
        ("the last day of a school", "wistful"), ("a prize for beekeepers", "sober"),
        ("the birthday of a village", "proud"), ("the end of a strike", "calm"),
        ("a football cup", "loud"), ("the first snow plough of a town", "dry"),
        ("a bridge that is finished", "grateful"), ("the farewell of a mayor", "kind"),
    )
]  # fmt: skip


class Speech(TypedDict, total=False):
    occasion: str
    tone: str
    points: list[str]
    anecdotes: list[str]
    speech: str
    title: str


def build(parts: Any) -> Any:
    async def outline(state: Speech) -> Speech:
        llm = init_chat_model(parts, temperature=0.0, max_tokens=128)
        prompt = f"Write 4 points, one per line, for a speech at {state['occasion']}."
        response = await llm.ainvoke(prompt)
        return {"points": [line.strip() for line in response.content.splitlines() if line.strip()]}

    async def tell(state: Speech) -> Speech:
        anecdotes = []
        for point in state["points"]:
            llm = init_chat_model(parts, temperature=0.0)
            prompt = f"Tell an anecdote of about 40 words in a {state['tone']} tone on: {point}"
            anecdotes.append((await llm.ainvoke(prompt)).content)
        return {"anecdotes": anecdotes}

    async def write(state: Speech) -> Speech:
        llm = init_chat_model(parts, temperature=0.0, max_tokens=400)
        body = "\n\n".join(f"{point}\n{told}" for point, told in zip(state["points"], state["anecdotes"], strict=True))
        response = await llm.ainvoke(f"Write the speech for {state['occasion']} in about 90 words.\n\n{body}")
        return {"speech": response.content}

    async def name(state: Speech) -> Speech:
        llm = init_chat_model(parts, temperature=0.0, max_tokens=32)
        points = "; ".join(state["points"])
        return {"title": (await llm.ainvoke(f"Write a title of about 8 words for a speech on: {points}")).content}

    graph = StateGraph(Speech)
    graph.add_sequence([outline, tell, write, name])
    graph.set_entry_point("outline")
    graph.set_finish_point("name")
    return graph.compile()
