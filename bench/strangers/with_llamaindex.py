"""LlamaIndex's public programs."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from bench.strangers.programs import Loader, Stranger
from bench.strangers.services import Asked, Manner

DOCS = partial(
    Stranger,
    repository="run-llama/llama_index",
    commit="df48f1d83b032aae3ec232013a11401cd26ea184",
    licence="MIT",
    framework="LlamaIndex",
)
_FILE = "data/paul_graham/paul_graham_essay.txt"
ESSAY = {_FILE: f"docs/docs/examples/{_FILE}", f"../{_FILE}": f"docs/docs/examples/{_FILE}"}


def _choice(asked: Asked) -> str:
    choices = len(re.findall(r"\(\d+\)", asked.prompt)) or 2
    return json.dumps([{"choice": 1 + int(asked.dice("choice") * choices), "reason": "It fits best."}])


def _questions(asked: Asked) -> str:
    """Sub-questions, to tools that the prompt describes."""
    described = asked.prompt.rpartition("<Tools>")[2] or asked.prompt
    names = list(dict.fromkeys(re.findall(r'^ *"(\w+)": "', described, re.M))) or ["essay"]
    about = asked.prompt.rpartition("<User Question>")[2].strip().splitlines()[:1] or ["this"]
    parts = [{"sub_question": f"{part} of: {about[0]}", "tool_name": names[number % len(names)]}
             for number, part in enumerate(("Beginning", "Middle", "End"))]  # fmt: skip
    return "```json\n" + json.dumps({"items": parts}, indent=1) + "\n```"


MANNER = Manner(
    says={r"<User Question>": _questions, r"choices are given|Some choices": _choice, r"\bPREVIOUS\b": "NEXT"},
    fields={"index": lambda asked: 1 + int(asked.dice("index") * 2)},
)


def notebook(attribute: str, *skip: str, until: str = "") -> Any:
    """What a notebook calls its query engine."""

    def load(loader: Loader) -> Any:
        return getattr(loader.notebook(skip, until), attribute)

    return load


def about_the_author(subject: str) -> str:
    return f"What did the author write about {subject}, and how did his life change with it?"


def retrieve(app: Any, value: Any, config: Any) -> Any:
    return app.retrieve(value)


def docs(name: str, about: str, path: str, attribute: str = "query_engine", *skip: str, **more: Any) -> Stranger:
    """A notebook of the documentation about the essay that comes with it."""
    return DOCS(
        name=f"docs-{name}", about=about, path=f"docs/docs/examples/{path}.ipynb", load=notebook(attribute, *skip),
        **{"value": about_the_author, "files": ESSAY, "manner": MANNER, **more},
    )  # fmt: skip


PROGRAMS = [
    docs("sub-question", "a question in parts, each to an engine of its own", "query_engine/sub_question_query_engine"),
    docs("router", "an engine chosen by the model", "query_engine/RouterQueryEngine"),
    docs(
        "custom-retrievers", "vector and keyword search, joined", "query_engine/CustomRetrievers", "custom_query_engine"
    ),
    docs("joint-qa-summary", "an index for questions, one for summaries", "query_engine/JointQASummary"),
    docs("citation", "an answer with citations", "query_engine/citation_query_engine"),
    docs("custom-query-engine", "a query engine of the author's own", "query_engine/custom_query_engine"),
    docs("flare", "an answer that looks ahead", "query_engine/flare_query_engine", "flare_query_engine"),
    docs("hyde", "a made-up document searches", "query_transformations/HyDEQueryTransformDemo", "hyde_query_engine"),
    docs("multi-step", "a question step by step", "query_transformations/SimpleIndexDemo-multistep"),
    docs("reciprocal-rerank", "BM25 and vectors, four questions", "retrievers/reciprocal_rerank_fusion"),
    docs(
        "router-retriever", "a retriever chosen by the model", "retrievers/router_retriever", "retriever", ask=retrieve
    ),
    docs("retry", "an answer that is evaluated, and asked for again", "evaluation/RetryQuery", "retry_query_engine"),
    docs("retriever-router", "the engine whose description is nearest", "query_engine/RetrieverRouterQueryEngine"),
    docs("relative-score", "BM25 and vectors, four questions, scores joined", "retrievers/relative_score_dist_fusion"),
    docs("prev-next", "passages with their neighbours", "node_postprocessor/PrevNextPostprocessorDemo"),
    docs(
        "course-router-sub-question",
        # Its second half reads reports that are not in the repository, so this is the router of the first.
        "an engine chosen by the model, of a course",
        "cookbooks/oreilly_course_cookbooks/Module-6/Router_And_SubQuestion_QueryEngine",
    ),
]
