"""Chat with history: a query is condensed from several turns, passages are found, and the answer sees all messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import SystemMessage, get_buffer_string
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, MessagesState, StateGraph

DOCUMENTS = [
    f"{room}: {rule}"
    for room in ("Pool", "Sauna", "Breakfast room", "Garage", "Garden", "Reception", "Gym")
    for rule in (
        "open from seven in the morning until ten in the evening, on Sundays from eight.",
        "guests with a room key enter free of charge, visitors pay at the desk.",
        "children under twelve are welcome in the company of an adult.",
        "dogs stay outside, except for guide dogs.",
    )
]


def _conversation(name: str, place: str, question: str) -> dict[str, Any]:
    return {
        "messages": [
            ("user", f"Hello, my name is {name} and I arrive on Friday."),
            ("assistant", f"Welcome, {name}! How can I help you before you arrive?"),
            ("user", f"I have read about the {place} on your page. Is it still there?"),
            ("assistant", f"Yes, the {place} is still there, and it was renovated last winter."),
            ("user", question),
        ]
    }


INPUTS = [
    _conversation("Ines", "pool", "When does it open on Sundays?"),
    _conversation("Jonas", "garage", "Can my brother use it too, who stays elsewhere?"),
    _conversation("Kemal", "garden", "Is my dog allowed in there?"),
    _conversation("Lucia", "sauna", "What about my daughter, who is ten?"),
    _conversation("Marek", "gym", "And how late can I go there?"),
    _conversation("Nora", "breakfast room", "Do I have to pay for a friend?"),
    _conversation("Olaf", "reception", "Will somebody be there when I come at eleven in the evening?"),
    _conversation("Priya", "pool", "May my parents swim there if they visit me?"),
    _conversation("Quentin", "gym", "Can my son of eleven train there with me?"),
    _conversation("Rosa", "sauna", "Is it open on a Sunday at half past seven?"),
    _conversation("Stefan", "garden", "May a friend who stays elsewhere sit there with me?"),
    _conversation("Tove", "breakfast room", "I have a guide dog, may it come in with me?"),
]

CONDENSE = ChatPromptTemplate.from_template(
    "Given the conversation, rephrase the last question in one sentence that stands alone.\n\n"
    "Chat history:\n{history}\n\nQuestion: {question}"
)
SYSTEM = """You are the assistant of the Hotel Lindenhof, a small family hotel by a lake. You are friendly, you call
guests by their names and you never promise what you can't know. You answer in about 70 words.

Rules of the house:
1. Bookings are made and changed by the reception alone. Tell guests how to call it if they ask.
2. Prices are not to be named. Say that they are on the page and that the reception knows more.
3. If a guest is angry, say that you are sorry, once, and offer a call by the manager.
4. Medical questions and emergencies go to an ambulance or a doctor, at once.
5. If the passages do not say what the guest wants to know, say so and name the reception.

Passages from the guide of the house:
{context}"""


class ChatState(MessagesState):
    query: str
    context: str


def build(parts: Any) -> Any:
    retriever = parts.store.as_retriever(search_kwargs={"k": 3})
    condense_chain = CONDENSE | parts.llm | StrOutputParser()

    def condense(state: ChatState) -> dict[str, Any]:
        *history, last = state["messages"]
        query = condense_chain.invoke({"history": get_buffer_string(history[-4:]), "question": last.content})
        return {"query": query.strip()}

    def retrieve(state: ChatState) -> dict[str, Any]:
        documents = retriever.invoke(state["query"])
        return {"context": "\n".join("- " + document.page_content for document in documents)}

    def respond(state: ChatState) -> dict[str, Any]:
        system = SystemMessage(content=SYSTEM.format(context=state["context"]))
        return {"messages": [parts.llm.invoke([system, *state["messages"]])]}

    graph = StateGraph(ChatState)
    graph.add_sequence([condense, retrieve, respond])
    graph.add_edge(START, "condense")
    graph.add_edge("respond", END)
    return graph.compile()
