"""Translator with an SDK: a helper opens OpenAI's client for each call, titles as lines, translated and checked."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from corpus.factories import openai_client

ASYNC = True
INPUTS = [
    {"exhibition": exhibition, "language": language}
    for exhibition, language in (
        ("clocks without hands", "Danish"), ("maps of the sea floor", "Finnish"), ("bread of nine valleys", "Welsh"),
        ("umbrellas of the theatre", "Basque"), ("keys that fit nothing", "Latvian"), ("the history of ink", "Maltese"),
        ("chairs for giants", "Irish"), ("bells that cracked", "Breton"), ("the first telephones", "Estonian"),
        ("letters never sent", "Catalan"), ("boots of postmen", "Frisian"), ("gardens on roofs", "Czech"),
    )
]  # fmt: skip


class Labels(TypedDict, total=False):
    exhibition: str
    language: str
    titles: list[str]
    translations: list[str]
    checks: list[str]


async def complete(system: str, prompt: str) -> str:
    async with openai_client() as client:
        response = await client.chat.completions.create(
            model="gpt-4o",
            temperature=0,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": prompt}],
        )
    return (response.choices[0].message.content or "").strip()


def build(parts: Any) -> Any:
    async def name(state: Labels) -> Labels:
        text = await complete("You name objects.", f"Write 4 titles, one per line, for {state['exhibition']}.")
        return {"titles": text.split("\n")}

    async def translate(state: Labels) -> Labels:
        system = f"You translate into {state['language']}."
        return {"translations": [await complete(system, title) for title in state["titles"]]}

    async def check(state: Labels) -> Labels:
        checks = []
        for title, translation in zip(state["titles"], state["translations"], strict=True):
            prompt = f"Is this right? Answer yes or no.\n{title} = {translation}"
            checks.append(await complete(f"You check {state['language']}.", prompt))
        return {"checks": checks}

    graph = StateGraph(Labels)
    graph.add_node("name", name)
    graph.add_node("translate", translate)
    graph.add_node("check", check)
    graph.add_edge(START, "name")
    graph.add_edge("name", "translate")
    graph.add_edge("translate", "check")
    graph.add_edge("check", END)
    return graph.compile()
