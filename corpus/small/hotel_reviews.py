"""Hotel reviews: the aspects that guests speak of, a remark and a mood for each by `abatch`, and a note in XML tags."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langgraph.graph import END, START, StateGraph

ASYNC = True
INPUTS = [
    {"hotel": hotel, "reviews": reviews}
    for hotel, reviews in (
        (
            "Hotel Seewind",
            ["The breakfast was rich, but the lift stood still for two days.", "Quiet rooms, thin towels, kind staff."],
        ),
        (
            "Pension Auerhahn",
            ["We heard every step from above.", "The sauna is a dream and the soup tastes of home.", "Cold corridors."],
        ),
        (
            "The Copper Kettle Inn",
            ["The bar closes too early.", "Our dog got a bowl of water before we got our keys."],
        ),
        (
            "Casa Limonaia",
            ["Lemon trees at the window, ants in the bathroom.", "Parking costs more than the dinner.", "Lovely pool."],
        ),
        (
            "Grand Hotel Petrov",
            ["Marble and gold, yet no socket near the bed.", "The porter knew my name after one day."],
        ),
        (
            "Motel Tall Pines",
            ["Cheap, clean, next to the road.", "The coffee machine was broken.", "The shower has two temperatures."],
        ),
        (
            "Riad Zaytoun",
            ["The roof at night is worth the trip.", "It took an hour to find the door.", "The tea never ends."],
        ),
        (
            "Fjordhuset",
            ["The view is everything.", "Fish for breakfast, fish for dinner.", "Beds as hard as the rock below."],
        ),
        (
            "Albergo della Posta",
            ["The stairs are steep and there is no lift.", "Best coffee in the valley, and the keys are of iron."],
        ),
        (
            "Station Hotel Malt",
            ["Trains all night.", "The curtains are thick and the bed is soft.", "Breakfast ends before I get up."],
        ),
        (
            "Ryokan Hinoki",
            ["The bath smells of cedar.", "We did not know when to take off our shoes.", "Silent garden, long dinner."],
        ),
        (
            "The Old Rectory",
            ["Warm fires and cold bathrooms.", "The owner plays the organ at seven in the morning."],
        ),
    )
]

ASPECTS = PromptTemplate.from_template(
    "You analyse guest reviews of {hotel}.\n"
    "Which aspects do the guests mention? Give 4 aspects as a comma-separated list.\n\n"
    "<reviews>\n{reviews}\n</reviews>"
)
REMARK = PromptTemplate.from_template(
    "Summarize in about 25 words what the guests of {hotel} say about <aspect>{aspect}</aspect>.\n\n"
    "<reviews>\n{reviews}\n</reviews>"
)
MOOD = PromptTemplate.from_template(
    "What is the sentiment of this remark? Answer with one of: positive, neutral, negative.\n\n"
    "<aspect>{aspect}</aspect>\n<remark>{remark}</remark>"
)
NOTE = PromptTemplate.from_template(
    "Write a note of about 80 words to the manager of {hotel}. Begin with what annoys the guests.\n\n{aspects}"
)


class State(TypedDict, total=False):
    hotel: str
    reviews: list[str]
    aspects: list[str]
    remarks: list[str]
    moods: list[str]
    note: str


def as_xml(reviews: list[str]) -> str:
    return "\n".join(f'<review id="{number}">{review}</review>' for number, review in enumerate(reviews, start=1))


def build(parts: Any) -> Any:
    aspect_chain = ASPECTS | parts.llm | StrOutputParser()
    remark_chain = REMARK | parts.llm | StrOutputParser()
    mood_chain = MOOD | parts.llm.bind(max_tokens=6) | StrOutputParser()
    note_chain = NOTE | parts.llm | StrOutputParser()

    async def find_aspects(state: State) -> State:
        text = await aspect_chain.ainvoke({"hotel": state["hotel"], "reviews": as_xml(state["reviews"])})
        return {"aspects": [aspect.strip() for aspect in text.split(",") if aspect.strip()]}

    async def collect_remarks(state: State) -> State:
        reviews = as_xml(state["reviews"])
        inputs = [{"hotel": state["hotel"], "aspect": aspect, "reviews": reviews} for aspect in state["aspects"]]
        return {"remarks": await remark_chain.abatch(inputs)}

    async def judge_moods(state: State) -> State:
        pairs = zip(state["aspects"], state["remarks"], strict=True)
        moods = await mood_chain.abatch([{"aspect": aspect, "remark": remark} for aspect, remark in pairs])
        return {"moods": [mood.strip().lower() for mood in moods]}

    async def write_note(state: State) -> State:
        tags = [
            f'<aspect name="{aspect}" sentiment="{mood}">\n{remark}\n</aspect>'
            for aspect, remark, mood in zip(state["aspects"], state["remarks"], state["moods"], strict=True)
        ]
        return {"note": await note_chain.ainvoke({"hotel": state["hotel"], "aspects": "\n".join(tags)})}

    graph = StateGraph(State)
    graph.add_sequence([find_aspects, collect_remarks, judge_moods, write_note])
    graph.add_edge(START, "find_aspects")
    graph.add_edge("write_note", END)
    return graph.compile()
