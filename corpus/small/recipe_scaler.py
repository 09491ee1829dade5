"""Recipe scaler: ingredients as dicts of a structured list, scaled in place, pasted as they are into later prompts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

INPUTS = [
    {"recipe": recipe, "serves": serves, "guests": guests}
    for recipe, serves, guests in (
        ("Fry two onions in butter, add 300 g rice, a litre of broth and a handful of peas.", 4, 10),
        ("Mix 500 g flour with yeast, warm milk, three eggs and a pinch of salt; bake with poppy seeds.", 8, 4),
        ("Simmer lentils with carrots, a bay leaf and vinegar, serve with four sausages.", 4, 6),
        ("Roast a pumpkin, blend it with ginger, coconut milk and lime.", 3, 12),
        ("Layer aubergines, minced lamb and tomatoes, cover with yoghurt and cheese.", 6, 9),
        ("Whisk six egg whites with sugar, fold in almonds, bake slowly, top with berries.", 8, 20),
        ("Salt a salmon with dill, pepper and sugar for two days, slice it thinly.", 10, 5),
        ("Boil potatoes, mash them with butter, nutmeg and hot milk.", 2, 7),
        ("Stew red cabbage with apples, cloves, wine and a spoon of jam.", 6, 15),
        ("Knead 400 g spelt flour with oil, water and rosemary; bake thin on a hot stone.", 5, 3),
        ("Poach four pears in red wine with cinnamon and 100 g sugar, serve with cream.", 4, 11),
        ("Stuff peppers with millet, feta and mint, bake in a litre of tomato sauce.", 3, 8),
    )
]


class Ingredient(TypedDict):
    """One ingredient of a recipe."""

    name: Annotated[str, ..., "What to buy"]
    amount: Annotated[float, ..., "How much"]
    unit: Literal["g", "ml", "pieces", "spoons"]


class Ingredients(TypedDict):
    """All ingredients of a recipe."""

    ingredients: Annotated[list[Ingredient], ..., "In the order of the recipe"]


class Kitchen(TypedDict, total=False):
    recipe: str
    serves: int
    guests: int
    ingredients: list[dict[str, Any]]
    substitutes: dict[str, str]
    shopping: str
    method: str


def build(parts: Any) -> Any:
    extractor = parts.llm.with_structured_output(Ingredients)

    def extract(state: Kitchen) -> Kitchen:
        found = extractor.invoke(f"Extract the ingredients of this recipe for {state['serves']}.\n\n{state['recipe']}")
        return {"ingredients": found["ingredients"]}

    def scale(state: Kitchen) -> Kitchen:
        factor = state["guests"] / state["serves"]
        for ingredient in state["ingredients"]:
            ingredient["amount"] = round(ingredient["amount"] * factor, 1)
        return {"ingredients": state["ingredients"]}

    def substitute(state: Kitchen) -> Kitchen:
        substitutes = {}
        for ingredient in state["ingredients"]:
            prompt = (
                f"You cook for {state['guests']} guests, one of whom is allergic to the ingredient below. "
                f"Name a substitute in about 12 words.\n\nIngredient: {ingredient}"
            )
            substitutes[ingredient["name"]] = parts.llm.invoke(prompt).text
        return {"substitutes": substitutes}

    def write_shopping_list(state: Kitchen) -> Kitchen:
        ingredients = state["ingredients"]
        prompt = (
            f"Say in about 50 words where to buy these {len(ingredients)} ingredients and in which order: {ingredients}"
        )
        return {"shopping": parts.llm.invoke(prompt).text}

    def write_method(state: Kitchen) -> Kitchen:
        prompt = (
            f"Rewrite the recipe for {state['guests']} guests in about 80 words.\n\n{state['recipe']}\n\n"
            f"Ingredients: {state['ingredients']}\nSubstitutes: {state['substitutes']}"
        )
        return {"method": parts.llm.invoke(prompt).text}

    graph = StateGraph(Kitchen)
    graph.add_sequence([extract, scale, substitute, write_shopping_list, write_method])
    graph.add_edge(START, "extract")
    graph.add_edge("write_method", END)
    return graph.compile()
