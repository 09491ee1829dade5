"""LangGraph's public programs."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from accel.engine import Sampling
from accel_sim.answers import answer
from bench.strangers.programs import Loader, Stranger
from bench.strangers.services import Asked, Manner

ACADEMY = partial(
    Stranger,
    repository="langchain-ai/langchain-academy",
    commit="fa15bec4a51c541c40c261586b037c9d134977b1",
    licence="MIT",
)


def notebook(attribute: str, *skip: str, until: str = "") -> Any:
    """What a notebook calls its graph."""

    def load(loader: Loader) -> Any:
        return getattr(loader.notebook(skip, until), attribute)

    return load


TUTORIALS = partial(
    Stranger, repository="langchain-ai/langgraph", commit="23961cff61a42b52525f3b20b4094d8d2fba1744", licence="MIT"
)


def template(module: str, attribute: str = "graph", root: str = "src") -> Any:
    """A graph that a module of the checkout makes."""

    def load(loader: Loader) -> Any:
        return getattr(loader.module(module, root), attribute)

    return load


def _question(subject: str) -> dict[str, Any]:
    return {"messages": [("user", f"What should I know about {subject}, and why does it matter today?")]}


def _no_objection(app: Any, config: Any) -> None:
    app.update_state(config, {"human_analyst_feedback": None}, as_node="human_feedback")


def _ingested(loader: Loader) -> Any:
    """Does what the author has done once: the documents go into the store."""
    ingestion = loader.module("ingestion")
    ingestion.retriever.vectorstore.add_documents(ingestion.doc_splits)
    return loader.module("graph.graph").app


def _email(asked: Asked, names: Any) -> list[str]:
    """Looks at the calendar, then writes, then is done."""
    order = ["check_calendar_availability", "write_email", "Done"]
    return [name for name in order[asked.rounds : asked.rounds + 1] if name in names]


def _deep(asked: Asked, names: Any) -> list[str]:
    """The supervisor sends two researchers, and is content; each of them searches twice."""
    if "ConductResearch" in names:
        return ["ConductResearch"] * 2 if asked.rounds == 0 else ["ResearchComplete"]
    return ["tavily_search"] if "tavily_search" in names else []


def _next_worker(asked: Asked) -> str:
    """One after the other, then it is done."""
    named = re.search(r"workers: \[(.*?)\]", asked.prompt)
    workers = re.findall(r"'(\w+)'", named[1]) if named else []
    turn = asked.prompt.count("<|user|>") + asked.prompt.count("<|assistant|>") - 1
    return workers[turn] if turn < len(workers) else "FINISH"


def _score(asked: Asked) -> Any:
    """A word for documents, a truth for answers."""
    return _grade(asked) if "Retrieved document" in asked.prompt else True


def _grade(asked: Asked) -> str:
    """Of five documents one is poor; answers are good."""
    return "no" if "Retrieved document" in asked.prompt and asked.dice("grade") < 0.2 else "yes"


GRADES = Manner(fields={"binary_score": _grade, "datasource": "vectorstore"})


def _final(asked: Asked) -> str:
    """Every second time the work is done."""
    return ("FINAL ANSWER: " if asked.dice("done") < 0.5 else "") + answer(asked.prompt, Sampling(temperature=0.0))


def _plan(asked: Asked) -> str:
    """ReWOO's plan: three steps, two of them searches."""
    task = asked.prompt.rpartition("Task:")[2]
    first, other, third = (answer(f"Write {n} words on this.\n{task}", Sampling(temperature=0.0)) for n in (6, 8, 7))
    return (
        f"Plan: {third} #E1 = Google[{first}]\nPlan: See what it comes to. #E2 = LLM[What does this mean, given #E1?]\n"
        f"Plan: Look for other views. #E3 = Google[{other}]"
    )


PROGRAMS = [
    ACADEMY(
        name="academy-map-reduce",
        about="jokes about subjects, in parallel, and the best one",
        path="module-4/map-reduce.ipynb",
        load=notebook("app"),
        value=lambda subject: {"topic": subject},
        manner=Manner(fields={"id": lambda asked: int(asked.dice("best") * 2)}),
    ),
    ACADEMY(
        name="academy-parallelization",
        about="web and Wikipedia search side by side, one answer",
        path="module-4/parallelization.ipynb",
        load=notebook("graph"),
        value=lambda subject: {"question": f"What is new about {subject}?"},
        replaced="network: OpenAI, Tavily, Wikipedia",
    ),
    ACADEMY(
        name="academy-research-assistant",
        about="analysts interview experts side by side, and a report of it",
        path="module-4/research-assistant.ipynb",
        load=notebook("graph"),
        value=lambda subject: {"topic": subject, "max_analysts": 3},
        approves=_no_objection,
        replaced="network: OpenAI, Tavily, Wikipedia",
    ),
    ACADEMY(
        name="academy-chatbot-summary",
        about="a conversation that is summarized when it gets long",
        path="module-2/chatbot-summarization.ipynb",
        load=notebook("graph"),
        value=lambda subject: {"messages": [("user", f"{n}. Tell me of {subject}.") for n in range(8)]},
    ),
    TUTORIALS(
        name="tutorial-rewoo",
        about="a plan with variables, its steps, and an answer",
        path="docs/docs/tutorials/rewoo/rewoo.ipynb",
        load=notebook("app"),
        value=lambda subject: {"task": f"the best-known place for {subject} and how it came to be"},
        manner=Manner(says={"make plans": _plan}),
        replaced="network: OpenAI, Tavily",
    ),
    TUTORIALS(
        name="tutorial-plan-and-execute",
        about="a plan, an agent for each step, and replanning",
        path="docs/docs/tutorials/plan-and-execute/plan-and-execute.ipynb",
        load=notebook("app"),
        value=lambda subject: {"input": f"Who is the leading expert on {subject} and where was he born?"},
        awaited=True,
        replaced="network: OpenAI, Tavily",
    ),
    TUTORIALS(
        name="tutorial-reflexion",
        about="an answer that is criticized and revised with searches, again and again",
        path="docs/docs/tutorials/reflexion/reflexion.ipynb",
        load=notebook("graph"),
        value=_question,
        replaced="network: Anthropic, Tavily",
    ),
    TUTORIALS(
        name="tutorial-self-discover",
        about="reasoning modules are selected, adapted, put together and followed",
        path="docs/docs/tutorials/self-discover/self-discover.ipynb",
        load=notebook("app"),
        value=lambda subject: {
            "task_description": f"Work out how {subject} could be explained to a child.",
            "reasoning_modules": "1. Break it down.\n2. Look for analogies.\n3. Question assumptions.\n4. Check.",
        },
        replaced="network: OpenAI; prompts of the hub",
    ),
    TUTORIALS(
        name="tutorial-lats",
        about="a tree of answers with tools, each reflected on",
        path="docs/docs/tutorials/lats/lats.ipynb",
        load=notebook("graph"),
        value=lambda subject: {"input": f"Write a short report on {subject}."},
        replaced="network: OpenAI, Tavily",
    ),
    TUTORIALS(
        name="tutorial-crag",
        about="retrieval with a grade for each document, web search if it is poor",
        path="docs/docs/tutorials/rag/langgraph_crag.ipynb",
        load=notebook("app"),
        value=lambda subject: {"question": f"How do agents remember {subject}?"},
        manner=GRADES,
        replaced="network: OpenAI, Tavily, web pages; Chroma in memory; a prompt of the hub",
    ),
    TUTORIALS(
        name="tutorial-adaptive-rag",
        about="a router, retrieval with grades, an answer that is checked twice",
        path="docs/docs/tutorials/rag/langgraph_adaptive_rag.ipynb",
        load=notebook("app"),
        value=lambda subject: {"question": f"How do agents remember {subject}?"},
        manner=GRADES,
        replaced="network: OpenAI, Tavily, web pages; Chroma in memory; a prompt of the hub",
    ),
    TUTORIALS(
        name="tutorial-self-rag",
        about="retrieval with grades, an answer that is checked for invention and use",
        path="docs/docs/tutorials/rag/langgraph_self_rag.ipynb",
        load=notebook("app"),
        value=lambda subject: {"question": f"How do agents remember {subject}?"},
        manner=GRADES,
        replaced="network: OpenAI, web pages; Chroma in memory; a prompt of the hub",
    ),
    TUTORIALS(
        name="tutorial-hierarchical-teams",
        about="supervisors of supervisors, and their agents with tools",
        path="docs/docs/tutorials/multi_agent/hierarchical_agent_teams.ipynb",
        load=notebook("super_graph"),
        value=_question,
        manner=Manner(
            fields={
                "urls": ["https://example.org/1"],
                "file_name": "draft.txt",
                "code": "print(1)",
                "next": _next_worker,
            },
            tools=lambda asked, names: [name for name in names if name not in ("read_document", "edit_document")][:1],
        ),
        replaced="network: OpenAI, Tavily",
    ),
    TUTORIALS(
        name="tutorial-collaboration",
        about="two agents that hand over to each other",
        path="docs/docs/tutorials/multi_agent/multi-agent-collaboration.ipynb",
        load=notebook("graph"),
        value=_question,
        manner=Manner(says={"FINAL ANSWER": _final}, fields={"code": "print(1)"}),
        replaced="network: Anthropic, Tavily",
    ),
    Stranger(
        name="react-agent",
        about="the template of an agent with tools",
        repository="langchain-ai/react-agent",
        commit="d89d249c2a768e8b166c7c4e3bfeff2c73acb00f",
        licence="MIT",
        path="src/react_agent",
        load=template("react_agent"),
        value=_question,
        ask=lambda app, value, config: app.ainvoke(value, config, context={}),
        awaited=True,
        replaced="network: Anthropic, Tavily",
    ),
    Stranger(
        name="data-enrichment",
        about="an agent researches a subject and fills a schema, and is judged",
        repository="langchain-ai/data-enrichment",
        commit="028fd9a96a1179397df5748e06870c2269308f20",
        licence="MIT",
        path="src/enrichment_agent",
        load=template("enrichment_agent"),
        value=lambda subject: {
            "topic": f"The leading companies in {subject}",
            "extraction_schema": {
                "type": "object",
                "properties": {
                    "companies": {"type": "array", "items": {"type": "string"}},
                    "summary": {"type": "string"},
                },
                "required": ["companies", "summary"],
            },
        },
        manner=Manner(rounds=1, fields={"is_satisfactory": True}),
        awaited=True,
        replaced="network: Anthropic, Tavily, web pages",
    ),
    Stranger(
        name="company-researcher",
        about="queries, searches side by side, notes, extraction, reflection",
        repository="langchain-ai/company-researcher",
        commit="d62bcbfd7e2bd477432d01c0a80dfb3791eb67d9",
        licence="none stated",
        path="src/agent",
        load=template("agent.graph"),
        value=lambda subject: {"company": f"{subject.title()} Ltd"},
        awaited=True,
        replaced="network: Anthropic, Tavily",
    ),
    Stranger(
        name="gemini-quickstart",
        about="queries, web research for each side by side, reflection, more research, an answer",
        repository="google-gemini/gemini-fullstack-langgraph-quickstart",
        commit="e34e569de465340e42f36cd3cab4fac0c3ce7036",
        licence="Apache-2.0",
        path="backend/src/agent",
        load=template("agent.graph", root="backend/src"),
        value=_question,
        replaced="network: Google",
    ),
    Stranger(
        name="langgraph-course-rag",
        about="a router, retrieval, a grade for each document, web search, an answer that is checked",
        repository="emarco177/langgaph-course",
        commit="84431a393c3afb0ac501a27d65569aa7c586fccb",
        licence="Apache-2.0",
        path="graph",
        load=_ingested,
        value=lambda subject: {"question": f"How do agents remember {subject}?"},
        manner=Manner(fields={"binary_score": _score, "datasource": "vectorstore"}),
        replaced="network: OpenAI, Tavily, web pages; a prompt of the hub",
    ),
    Stranger(
        name="local-deep-researcher",
        about="a query, a search, a summary, a reflection, three times over",
        repository="langchain-ai/local-deep-researcher",
        commit="0be4c86ea71e1671ff273dfc07dc1aab45ed22f8",
        licence="MIT",
        path="src/ollama_deep_researcher",
        load=template("ollama_deep_researcher.graph"),
        value=lambda subject: {"research_topic": subject},
        replaced="network: Ollama, Tavily",
        config={"configurable": {"search_api": "tavily"}},
    ),
    Stranger(
        name="company-research-agent",
        about="four analysts with queries and searches, then curation, enrichment, briefings and a report",
        repository="guy-hartstein/company-research-agent",
        commit="a759308c68b1643c9db1eee46473d3a56b70b3a3",
        licence="Apache-2.0",
        path="backend",
        load=template("langgraph_entry", root=""),
        value=lambda subject: {
            "company": f"{subject.title()} Ltd",
            "company_url": "https://example.org",
            "industry": subject,
            "hq_location": "Oslo",
        },
        awaited=True,
        replaced="network: OpenAI, Google, Tavily",
    ),
    Stranger(
        name="open-deep-research",
        about="a brief, a supervisor with researchers side by side, compressed findings, a report",
        repository="langchain-ai/open_deep_research",
        commit="408da442a661ea5e40a6163329f82e3f22628949",
        licence="MIT",
        path="src/open_deep_research",
        load=template("open_deep_research.deep_researcher", "deep_researcher"),
        value=_question,
        awaited=True,
        manner=Manner(rounds=2, tools=_deep),
        replaced="network: OpenAI, Tavily",
        config={"configurable": {"allow_clarification": False, "search_api": "tavily"}},
    ),
    Stranger(
        name="email-assistant",
        about="triage of an e-mail, and an agent that answers it",
        repository="langchain-ai/agents-from-scratch",
        commit="edf2c479191d89bf96e6dceb6ee952a618979fc6",
        licence="MIT",
        path="src/email_assistant",
        load=template("email_assistant.email_assistant", "email_assistant"),
        value=lambda subject: {
            "email_input": {
                "author": "Ada <ada@example.org>",
                "to": "Lance <lance@example.org>",
                "subject": f"Question about {subject}",
                "email_thread": f"Hi Lance,\nwhat do you know of {subject}, and when could we meet?\nAda",
            }
        },
        manner=Manner(fields={"classification": "respond"}, tools=_email),
    ),
    ACADEMY(
        name="academy-agent",
        about="an agent that calculates",
        path="module-1/agent.ipynb",
        load=notebook("react_graph"),
        value=lambda subject: {"messages": [("user", f"Add {len(subject)} and 4, then multiply, for {subject}.")]},
        manner=Manner(rounds=3),
    ),
    Stranger(
        name="langgraph-example",
        about="the example of a deployed agent",
        repository="langchain-ai/langgraph-example",
        commit="ecf328da62e3efc3270c16fb83e1f6725dd107d1",
        licence="none stated",
        path="my_agent",
        load=template("my_agent.agent", root=""),
        value=_question,
        replaced="network: Anthropic, Tavily",
    ),
]
