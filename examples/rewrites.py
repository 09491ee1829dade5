"""What each of Accel's five rewrites is worth, on a small LangGraph program where it is the one that matters.

Every program runs four times in virtual time, on simulated engines with the published speed of a 7B model on one GPU:
as it is, accelerated with all rewrites off, with that one alone, and with all of them. Answers are compared. Exit code
1 if any differs. No GPU and no model is needed; `--explain NAME` prints what the rewrite makes of its program's graph.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from rich.console import Console
from rich.table import Table

import accel
import accel_local
from accel.graph.passes import PASSES, only
from accel.process import clock
from accel.run.plans.plan import Plan
from accel_langgraph import AccelChatModel, AccelEmbeddings, AccelVectorStore
from accel_sim import SimEmbeddingConfig, SimLLMConfig, SimStoreConfig, profile_of, virtual

MODEL = "7b"
DIMENSION = 64
INGEST_S = 1 / 361
"""A record into a pgvector table with an HNSW index, measured on two CPU cores."""
LEARNT_FROM = 3
"""Requests of each arm before the measured one."""

Node = Callable[[Any], Any]


@dataclass
class Engines:
    """What the programs are built from; every arm has a store of its own."""

    arm: str
    llm: AccelChatModel = field(default_factory=lambda: AccelChatModel(model=MODEL, engine=SimLLMConfig(profile=MODEL)))

    def store(self) -> AccelVectorStore:
        embeddings = AccelEmbeddings(engine=SimEmbeddingConfig(profile_of(MODEL, "embedding"), DIMENSION))
        config = SimStoreConfig(self.arm, DIMENSION, profile_of(MODEL, "searching"), ingest_s=INGEST_S)
        return AccelVectorStore(embeddings, self.arm, dimension=DIMENSION, engine=config)


@dataclass(frozen=True)
class Example:
    rewrite: str
    """Name of the pass."""
    shown: str
    program: str
    build: Callable[[Engines], Any]
    request: Callable[[int], dict[str, Any]]
    """The input of request number n."""


def chain(state: type, *nodes: tuple[str, Node]) -> Any:
    builder: Any = StateGraph(state)
    names = [START, *(name for name, _ in nodes), END]
    for name, node in nodes:
        builder.add_node(name, node)
    for before, after in zip(names, names[1:], strict=False):
        builder.add_edge(before, after)
    return builder.compile()


WORDS = (
    "harbour bridge winter market engine garden letter mountain railway copper island theatre quarter lantern meadow "
    "council valley station orchard weather captain library granite festival current village journal compass timber"
).split()


def prose(words: int, seed: str) -> str:
    dice = Random(seed)
    return " ".join(dice.choice(WORDS) for _ in range(words))


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


# --- dependency pruning: three opinions that don't need each other


class Advice(TypedDict, total=False):
    question: str
    engineer: str
    lawyer: str
    buyer: str
    decision: str


def advice(engines: Engines) -> Any:
    speaker, judge = engines.llm.bind(max_tokens=96), engines.llm.bind(max_tokens=64)

    def opinion(role: str) -> tuple[str, Node]:
        async def node(state: Advice) -> dict[str, Any]:
            asked = f"You are the {role}. Say in about 70 words what you think.\n\nQuestion: {state['question']}"
            return {role: (await speaker.ainvoke(asked)).text}

        return f"ask_{role}", node

    async def decide(state: Advice) -> dict[str, Any]:
        heard = "\n\n".join((state["engineer"], state["lawyer"], state["buyer"]))
        asked = f"Decide in about 45 words.\n\nQuestion: {state['question']}\n\nOpinions:\n{heard}"
        return {"decision": (await judge.ainvoke(asked)).text}

    return chain(Advice, opinion("engineer"), opinion("lawyer"), opinion("buyer"), ("decide", decide))


# --- prefill split: the contract is there long before the clauses that are looked up for it


class Review(TypedDict, total=False):
    id: str
    subject: str
    contract: str
    rules: str
    found: list[Document]
    review: str


def review(engines: Engines) -> Any:
    store, writer = engines.store(), engines.llm.bind(max_tokens=64)

    async def index(state: Review) -> dict[str, Any]:
        rules = lines(state["rules"])
        ids = [f"{state['id']}/{number}" for number in range(len(rules))]
        await store.aadd_texts(rules, [{"review": state["id"]} for _ in rules], ids=ids)
        return {}

    async def find(state: Review) -> dict[str, Any]:
        return {"found": await store.asimilarity_search(state["subject"], k=2, filter={"review": state["id"]})}

    async def write(state: Review) -> dict[str, Any]:
        rules = "\n".join(document.page_content for document in state["found"])
        asked = f"Review the contract in about 45 words.\n\nContract:\n{state['contract']}\n\nRules:\n{rules}"
        return {"review": (await writer.ainvoke(asked)).text}

    return chain(Review, ("index", index), ("find", find), ("write", write))


# --- decode streaming: the first line of a list is enough to begin with


class Checklist(TypedDict, total=False):
    task: str
    steps: list[str]
    risks: list[str]


def checklist(engines: Engines) -> Any:
    planner, critic = engines.llm.bind(max_tokens=160), engines.llm.bind(max_tokens=32)

    async def plan(state: Checklist) -> dict[str, Any]:
        asked = f"Write 6 steps of about 16 words, one per line and nothing else.\n\nTask: {state['task']}"
        return {"steps": lines((await planner.ainvoke(asked)).text)}

    async def assess(state: Checklist) -> dict[str, Any]:
        risks = []
        for step in state["steps"]:
            asked = f"Name the risk of this step in about 20 words.\n\nStep: {step}"
            risks.append((await critic.ainvoke(asked)).text)
        return {"risks": risks}

    return chain(Checklist, ("plan", plan), ("assess", assess))


# --- stage decomposition: notes are embedded in micro-batches while earlier ones are already being indexed


class Tickets(TypedDict, total=False):
    batch: str
    tickets: str
    question: str
    found: list[Document]
    answer: str


def tickets(engines: Engines) -> Any:
    store, writer = engines.store(), engines.llm.bind(max_tokens=48)

    async def index(state: Tickets) -> dict[str, Any]:
        texts = lines(state["tickets"])
        ids = [f"{state['batch']}/{number}" for number in range(len(texts))]
        await store.aadd_texts(texts, [{"batch": state["batch"]} for _ in texts], ids=ids)
        return {}

    async def find(state: Tickets) -> dict[str, Any]:
        return {"found": await store.asimilarity_search(state["question"], k=3, filter={"batch": state["batch"]})}

    async def answer(state: Tickets) -> dict[str, Any]:
        shown = "\n".join(document.page_content for document in state["found"])
        asked = f"Answer in about 35 words from the tickets.\n\nQuestion: {state['question']}\n\nTickets:\n{shown}"
        return {"answer": (await writer.ainvoke(asked)).text}

    return chain(Tickets, ("index", index), ("find", find), ("answer", answer))


# --- nested pmap: every query of every claim is a call of its own


class Check(TypedDict, total=False):
    claims: list[str]
    questions: list[list[str]]
    answers: list[list[str]]


def check(engines: Engines) -> Any:
    asker, expert = engines.llm.bind(max_tokens=64), engines.llm.bind(max_tokens=48)

    async def ask(state: Check) -> dict[str, Any]:
        questions = []
        for claim in state["claims"]:
            asked = f"Write 3 questions that test the claim, one per line and nothing else.\n\nClaim: {claim}"
            questions.append(lines((await asker.ainvoke(asked)).text))
        return {"questions": questions}

    async def answer(state: Check) -> dict[str, Any]:
        answers: list[list[str]] = []
        for questions in state["questions"]:
            answers.append([])
            for question in questions:
                asked = f"Answer in about 35 words.\n\nQuestion: {question}"
                answers[-1].append((await expert.ainvoke(asked)).text)
        return {"answers": answers}

    return chain(Check, ("ask", ask), ("answer", answer))


EXAMPLES = (
    Example(
        "prune", "dependency pruning", "three opinions, then a decision", advice,
        lambda n: {"question": f"Should we buy the {prose(6, f'advice {n}')}?"},
    ),
    Example(
        "prefill", "prefill split", "index 40 rules, then review a long contract", review,
        lambda n: {
            "id": f"review {n}", "subject": prose(6, f"subject {n}"), "contract": prose(1500, f"contract {n}"),
            "rules": "\n".join(prose(60, f"rule {n} {i}") for i in range(40)),
        },
    ),
    Example(
        "decode", "decode streaming", "a list of steps, then the risk of each", checklist,
        lambda n: {"task": f"Move the {prose(5, f'task {n}')}"},
    ),
    Example(
        "stage", "stage decomposition", "index 240 tickets, then answer a question", tickets,
        lambda n: {
            "batch": f"day {n}", "tickets": "\n".join(prose(40, f"ticket {n} {i}") for i in range(240)),
            "question": f"What happened to the {prose(4, f'question {n}')}?",
        },
    ),
    Example(
        "pmap", "nested pmap", "questions about each claim, then an answer to each", check,
        lambda n: {"claims": [f"The {prose(8, f'claim {n} {i}')}" for i in range(4)]},
    ),
)  # fmt: skip


# --- measuring


@dataclass(frozen=True)
class Row:
    example: Example
    unmodified_s: float
    off_s: float
    alone_s: float
    """With this rewrite alone."""
    all_s: float
    share: float
    """Limit over what the run with all rewrites took; an addition to a store counts as it ran."""
    equal: bool
    explained: str

    @property
    def own_ratio(self) -> float:
        return self.off_s / self.alone_s

    @property
    def ratio(self) -> float:
        return self.off_s / self.all_s


def measure(example: Example) -> Row:
    """All four arms in one virtual time of their own. Raises KeyError for a rewrite that is no pass."""
    return virtual.run(lambda: _measure(example))


async def _measure(example: Example) -> Row:
    passes = {"all off": only(), "alone": only(example.rewrite), "all on": PASSES}
    seconds: dict[str, float] = {}
    answers: dict[str, list[Any]] = {}
    explained, share = "", 0.0
    for arm in ("unmodified", *passes):
        engines = Engines(f"{example.rewrite} {arm}")
        graph = example.build(engines)
        if arm in passes:
            graph = accel.accelerate(graph, plan=Plan(passes[arm]))
        for number in range(LEARNT_FROM + 1):
            await _forget_prefixes(engines.llm)
            began = clock.now_s()
            answers.setdefault(arm, []).append(await graph.ainvoke(example.request(number)))
            seconds[arm] = clock.now_s() - began
            accel.settle()
        if arm == "alone":
            explained = graph.explain(graph=True)
        elif arm == "all on":
            share = graph.report().share_of_limit or 0.0
    equal = all(given == answers["unmodified"] for given in answers.values())
    times = (seconds["unmodified"], seconds["all off"], seconds["alone"], seconds["all on"])
    return Row(example, *times, share, equal, explained)


async def _forget_prefixes(llm: AccelChatModel) -> None:
    """So that no arm finds what another has computed."""
    engine: Any = await accel_local.aengine(llm.engine_config)
    await accel_local.arun(engine.reset_prefix_cache())


def table(rows: list[Row]) -> Table:
    shown = Table(caption="Seconds of virtual time and ratios to all off; 100% of limit is the best schedule known")
    for column in ("rewrite", "program"):
        shown.add_column(column)
    for column in ("unmodified", "all off", "alone", "all on", "of limit", "answers"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        shown.add_row(
            row.example.shown, row.example.program, f"{row.unmodified_s:.2f}", f"{row.off_s:.2f}",
            f"{row.alone_s:.2f} ({row.own_ratio:.2f}x)", f"{row.all_s:.2f} ({row.ratio:.2f}x)", f"{row.share:.0%}",
            "equal" if row.equal else "[red]DIFFERENT[/red]",
        )  # fmt: skip
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [example.rewrite for example in EXAMPLES]
    parser.add_argument("--explain", choices=names, metavar="NAME", help=f"print the graphs: {', '.join(names)}")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 132)
    rows = [measure(example) for example in EXAMPLES if options.explain in (None, example.rewrite)]
    if options.explain:
        console.print(rows[0].explained, markup=False, highlight=False, soft_wrap=True)
    console.print(table(rows))
    return 0 if all(row.equal for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
