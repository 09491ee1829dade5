"""Kitchen helper: `create_agent` with two tools and a system prompt, asked one question."""

from __future__ import annotations

from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.tools import tool

ASYNC = True
INPUTS = [
    {"messages": [{"role": "user", "content": question}]}
    for question in (
        "How much flour is two and a half cups, in grams?",
        "I have a soup for four people but twelve guests, what about the salt?",
        "My oven shows Fahrenheit, what is 180 degrees Celsius for the bread?",
        "Scale a lentil stew for six down to two, please.",
        "How many grams of sugar are in three cups?",
        "A pancake batter for three has to feed seven. How much milk?",
        "How many grams are five cups of rice?",
        "I want to bake half of a cake for ten. What do I need?",
        "How many grams is half a cup of butter?",
        "My rice pudding is for two, but nine are coming. How much milk?",
        "The recipe says 350 degrees Fahrenheit, what is that in Celsius?",
        "Scale a risotto for eight down to three, please.",
    )
]  # fmt: skip

GRAMS_PER_CUP = {"flour": 125, "sugar": 200, "rice": 185, "butter": 227, "milk": 245}


@tool
def cups_to_grams(ingredient: Literal["flour", "sugar", "rice", "butter", "milk"], cups: float) -> str:
    """Convert cups of an ingredient to grams."""
    return f"{cups} cups of {ingredient} weigh {GRAMS_PER_CUP[ingredient] * cups:.0f} grams."


@tool
def scale_recipe(amount: float, servings: int, wanted: int) -> str:
    """Scale the amount in a recipe from its servings to the wanted servings."""
    if servings <= 0:
        return "A recipe needs at least one serving."
    return f"For {wanted} servings take {amount * wanted / servings:.1f} instead of {amount}."


def build(parts: Any) -> Any:
    return create_agent(
        parts.llm,
        tools=[cups_to_grams, scale_recipe],
        system_prompt="You are a calm kitchen helper. Compute with the tools and explain the result in plain words.",
    )
