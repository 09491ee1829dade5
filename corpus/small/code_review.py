"""Code review: each file of a change is reviewed in a loop, and the findings go as JSON into the final prompt."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import StateGraph

ASYNC = True
SOURCES = {
    "prices.py": "CACHE = {}\n\ndef price(item):\n    CACHE[item] = CACHE.get(item) or load(item)",
    "dates.py": "def parse(text):\n    day, month, year = text.split('.')\n    return int(year), int(month), int(day)",
    "report.py": "from dates import parse\n\ndef newest(rows):\n    return max(rows, key=lambda row: parse(row[0]))",
    "cli.py": "import sys\nfrom report import newest\nprint(newest([line.split() for line in sys.stdin]))",
    "upload.py": "def upload(path):\n    try:\n        return send(path)\n    except: return upload(path)",
    "users.py": "def find(db, name):\n    return db.execute(f'SELECT * FROM users WHERE name = {name!r}')",
    "views.py": "def show(request):\n    return find(request.db, request.args['name']).fetchone()",
    "money.py": "def total(prices):\n    return round(sum(prices), 2)",
    "count.py": "def count(text, seen={}):\n    for word in text.split():\n        seen[word] = seen.get(word, 0) + 1",
    "settings.py": "import json\n\nSETTINGS = json.load(open('settings.json'))",
    "thumbs.py": "def thumbs(folder):\n    for path in folder.iterdir():\n        small(path).save(path)",
    "small.py": "def small(path):\n    image = open_image(path)\n    return image.resize((64, 64))",
}
INPUTS = [
    {"title": title, "files": {name: SOURCES[name] for name in names.split()}}
    for title, names in (
        ("Cache prices", "prices.py money.py"),
        ("Parse dates in reports", "dates.py report.py cli.py"),
        ("Retry uploads", "upload.py"),
        ("Users by name", "users.py views.py"),
        ("Thumbnails after an upload", "upload.py thumbs.py small.py"),
        ("Count the words of a report", "count.py cli.py"),
        ("Settings in a file", "settings.py users.py views.py"),
        ("Prices by date", "dates.py prices.py money.py"),
        ("Small pictures", "small.py thumbs.py"),
        ("Words in dated reports", "report.py dates.py count.py"),
        ("Round totals", "money.py"),
        ("Uploads of users", "views.py users.py upload.py"),
    )
]

REVIEW = ChatPromptTemplate.from_messages(
    [
        ("system", "You review code."),
        (
            "human",
            "Review this file. Return JSON with the fields problem, advice and severity (number from 1 to 5).\n\n"
            "File: {name}\n\n{source}",
        ),
    ]
)
VERDICT = (
    "Write a review of about 80 words of the change {title!r}, the gravest problem first.\n\nFindings:\n{findings}"
)


class State(TypedDict, total=False):
    title: str
    files: dict[str, str]
    findings: dict[str, dict[str, Any]]
    review: str


def build(parts: Any) -> Any:
    reviewer = REVIEW | parts.llm | JsonOutputParser()

    async def review_files(state: State) -> State:
        findings: dict[str, dict[str, Any]] = {}
        for name, source in state["files"].items():
            findings[name] = await reviewer.ainvoke({"name": name, "source": source})
        return {"findings": findings}

    async def conclude(state: State) -> State:
        findings = json.dumps(state["findings"], indent=2, sort_keys=True)
        answer = await parts.llm.ainvoke(VERDICT.format(title=state["title"], findings=findings))
        return {"review": answer.text}

    graph = StateGraph(State)
    graph.add_node("review_files", review_files)
    graph.add_node("conclude", conclude)
    graph.add_edge("review_files", "conclude")
    graph.set_entry_point("review_files")
    graph.set_finish_point("conclude")
    return graph.compile()
