"""Quote of a joiner: items with hours and prices in a structured form, sums with taxes, a letter and a message."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"wish": wish}
    for wish in (
        "a shelf along the whole wall of the study", "six new steps for the cellar stairs",
        "a bench around the tiled stove", "a door that doesn't squeak", "a table for twelve people",
        "a bed under the sloping roof", "a fence of chestnut", "two windows like the old ones",
        "a counter for a small bar", "a hen house with a ladder", "a floor of oak in the hall",
        "a cabinet for the minerals of a collector",
    )
]  # fmt: skip
TAX = 0.19


class Item(TypedDict):
    """One item of a quote."""

    work: Annotated[str, ..., "What is done"]
    hours: Annotated[int, ..., "How long it takes, from 1 to 40"]
    price: Annotated[int, ..., "Price of an hour in euros, from 30 to 90"]


class Items(TypedDict):
    """All items of a quote."""

    items: Annotated[list[Item], ..., "In the order of the work"]


class Quote(TypedDict, total=False):
    wish: str
    items: list[dict[str, Any]]
    net: float
    gross: float
    letter: str
    message: str
    reserve: str


def build(parts: Any) -> Any:
    estimator = parts.llm.with_structured_output(Items)

    def estimate(state: Quote) -> Quote:
        found = estimator.invoke(f"You are a joiner. List what has to be done, and for how much.\n\n{state['wish']}")
        return {"items": found["items"]}

    def add_up(state: Quote) -> Quote:
        net = sum(item["hours"] * item["price"] for item in state["items"])
        return {"net": net, "gross": round(net * (1 + TAX), 2)}

    def letter(state: Quote) -> Quote:
        rows = "\n".join(f"- {i['work']}: {i['hours']} h at {i['price']} EUR" for i in state["items"])
        prompt = (
            f"Write a quote of about 80 words for {state['wish']}.\n\n{rows}\n\n"
            f"Hours: {sum(item['hours'] for item in state['items'])}\n"
            f"Net: {state['net']:,.2f} EUR\nTotal: {state['gross']:,.2f} EUR"
        )
        return {"letter": parts.llm.invoke(prompt).content}

    def message(state: Quote) -> Quote:
        prompt = f"Tell a customer in about 20 words that {state['wish']} costs {state['gross']:,.2f} EUR in all."
        return {"message": parts.llm.invoke(prompt).content}

    def reserve(state: Quote) -> Quote:
        most = max(state["items"], key=lambda item: item["hours"] * item["price"])
        prompt = (
            f"The dearest item of a quote over {state['gross']:,.2f} EUR is below. Name in about 40 words what may "
            f"make it dearer.\n\n{most['work']}"
        )
        return {"reserve": parts.llm.invoke(prompt).content}

    graph = StateGraph(Quote)
    graph.add_node("estimate", estimate)
    graph.add_node("add_up", add_up)
    graph.add_node("write_letter", letter)
    graph.add_node("write_message", message)
    graph.add_node("write_reserve", reserve)
    graph.add_edge(START, "estimate")
    graph.add_edge("estimate", "add_up")
    graph.add_edge("add_up", "write_letter")
    graph.add_edge("write_letter", "write_message")
    graph.add_edge("write_message", "write_reserve")
    graph.add_edge("write_reserve", END)
    return graph.compile()
