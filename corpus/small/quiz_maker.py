"""Quiz maker: a JSON array of questions, an answer and a hint for each question, and a title for the quiz."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"subject": "the planets", "level": "easy"},
    {"subject": "the human heart", "level": "hard"},
    {"subject": "medieval castles", "level": "easy"},
    {"subject": "musical instruments", "level": "medium"},
    {"subject": "rivers of Africa", "level": "hard"},
    {"subject": "the rules of chess", "level": "medium"},
    {"subject": "bread and baking", "level": "easy"},
    {"subject": "famous explorers", "level": "hard"},
    {"subject": "birds of the garden", "level": "medium"},
    {"subject": "the history of paper", "level": "hard"},
    {"subject": "clouds and rain", "level": "easy"},
    {"subject": "bridges of Europe", "level": "medium"},
]

SYSTEM = "You are a teacher who writes quizzes. You only answer with what you are asked for."
QUESTIONS = """Write {count} {level} quiz questions about {subject}.
Return them as a JSON array of strings and nothing else."""
ANSWER = """Answer the quiz question in one sentence.

Subject: {subject}
Question: {question}"""
HINT = """Write a hint of about 12 words that does not give the answer away.

Question: {question}"""


class Quiz(TypedDict, total=False):
    subject: str
    level: str
    questions: list[str]
    items: list[dict[str, str]]
    title: str


def parse_array(text: str) -> list[str]:
    text = text.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text[text.index("[") : text.rindex("]") + 1])


def build(parts: Any) -> Any:
    def ask(prompt: str) -> str:
        response = parts.llm.invoke([SystemMessage(content=SYSTEM), HumanMessage(content=prompt)])
        return response.content

    def write_questions(state: Quiz) -> Quiz:
        text = ask(QUESTIONS.format(count=3, level=state["level"], subject=state["subject"]))
        return {"questions": parse_array(text)}

    def write_answers(state: Quiz) -> Quiz:
        items = []
        for question in state["questions"]:
            item = {"question": question}
            item["answer"] = ask(ANSWER.format(subject=state["subject"], question=question))
            item["hint"] = ask(HINT.format(question=question))
            items.append(item)
        return {"items": items}

    def write_title(state: Quiz) -> Quiz:
        asked = "\n".join(f"* {item['question']}" for item in state["items"])
        title = ask(f"Write a title of about 6 words for this quiz about {state['subject']}.\n\n{asked}")
        return {"title": title.strip().strip('".')}

    graph = StateGraph(Quiz)
    graph.add_node("write_questions", write_questions)
    graph.add_node("write_answers", write_answers)
    graph.add_node("write_title", write_title)
    graph.add_edge(START, "write_questions")
    graph.add_edge("write_questions", "write_answers")
    graph.add_edge("write_answers", "write_title")
    graph.add_edge("write_title", END)
    return graph.compile()
