"""Book outline: chapters as lines, the sections of each chapter as lines, and a paragraph for each section."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

ASYNC = True
INPUTS = [
    {"title": "The Patient Gardener", "reader": "beginners"},
    {"title": "A Short History of Salt", "reader": "curious adults"},
    {"title": "Sailing Alone", "reader": "weekend sailors"},
    {"title": "How Bridges Stand", "reader": "pupils of twelve"},
    {"title": "The Honest Kitchen", "reader": "students who cook for the first time"},
    {"title": "Listening to Birds", "reader": "people who live in cities"},
    {"title": "Letters by Hand", "reader": "artists"},
    {"title": "Running Slowly", "reader": "people over fifty"},
    {"title": "A Year with Bees", "reader": "owners of small gardens"},
    {"title": "The Night Sky", "reader": "parents and children"},
    {"title": "Repair It Yourself", "reader": "tenants"},
    {"title": "What Maps Leave Out", "reader": "hikers who like history"},
]


class Section(BaseModel):
    heading: str
    text: str = ""


class Chapter(BaseModel):
    title: str
    sections: list[Section] = Field(default_factory=list)


class Book(BaseModel):
    title: str
    reader: str
    chapters: list[Chapter] = Field(default_factory=list)
    manuscript: str = ""


def lines(text: str) -> list[str]:
    return [line.strip(" -") for line in text.strip().split("\n") if line.strip()]


def build(parts: Any) -> Any:
    llm = parts.llm

    async def plan_chapters(book: Book) -> dict[str, Any]:
        prompt = (
            "You are an editor of non-fiction.\n"
            "Write the titles of 3 chapters, one per line, without numbers.\n\n"
            f"Title: {book.title}\n\nFor: {book.reader}"
        )
        response = await llm.ainvoke(prompt)
        return {"chapters": [Chapter(title=title) for title in lines(response.content)[:3]]}

    async def plan_sections(book: Book) -> dict[str, Any]:
        for chapter in book.chapters:
            prompt = (
                "You are an editor of non-fiction.\n"
                f"Write the headings of 2 sections for the chapter '{chapter.title}' of the book '{book.title}'. "
                "One per line and nothing else."
            )
            response = await llm.ainvoke(prompt)
            chapter.sections = [Section(heading=heading) for heading in lines(response.content)[:2]]
        return {"chapters": book.chapters}

    async def write_sections(book: Book) -> dict[str, Any]:
        for number, chapter in enumerate(book.chapters, start=1):
            for section in chapter.sections:
                prompt = (
                    f"Write the paragraph of about 60 words on '{section.heading}' for {book.reader}.\n"
                    f"It belongs to chapter {number}, '{chapter.title}', of '{book.title}'."
                )
                response = await llm.ainvoke(prompt)
                section.text = response.content
        return {"chapters": book.chapters}

    async def assemble(book: Book) -> dict[str, Any]:
        pages = [f"# {book.title}"]
        for chapter in book.chapters:
            pages.append(f"## {chapter.title}")
            pages += [f"### {section.heading}\n\n{section.text}" for section in chapter.sections]
        return {"manuscript": "\n\n".join(pages)}

    graph = StateGraph(Book)
    graph.add_node("plan_chapters", plan_chapters)
    graph.add_node("plan_sections", plan_sections)
    graph.add_node("write_sections", write_sections)
    graph.add_node("assemble", assemble)
    graph.add_edge(START, "plan_chapters")
    graph.add_edge("plan_chapters", "plan_sections")
    graph.add_edge("plan_sections", "write_sections")
    graph.add_edge("write_sections", "assemble")
    graph.add_edge("assemble", END)
    return graph.compile()
