"""What the source of every random program begins with."""

PRELUDE = """
import asyncio
import json
import operator
import re
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt

from compat_tests.answers import MARK, ModelError
from compat_tests.fakes import OWNER, TENANT
from compat_tests.surroundings import CALLER, Caller

parse_json = JsonOutputParser()


class State(TypedDict, total=False):
    number: str
    index: str
    question: str
    text: str
    items: list[str]
    rounds: int
    notes: Annotated[list[str], operator.add]


def lines(answer):
    return [line.strip() for line in answer.splitlines() if line.strip()]


def numbered(answer):
    return [re.sub(r"^\\d+[.)]\\s*", "", line) for line in lines(answer) if line[:1].isdigit()]


def bullets(answer):
    return [line[2:] for line in lines(answer) if line.startswith("- ")]


def commas(answer):
    return [part.strip() for part in answer.split(",")]


def json_items(answer):
    try:
        return json.loads(answer)["items"]
    except ValueError:
        return []


def scrub(text):
    return re.sub(r"\\S+@\\S+", "[mail]", MARK.sub("[redacted]", text))


def pseudonyms(text):
    names = [found.group() for found in MARK.finditer(text)]
    for number, name in enumerate(names):
        text = text.replace(name, f"[{number}]")
    return text, names


def named(text, names):
    for number, name in enumerate(names):
        text = text.replace(f"[{number}]", name)
    return text


def asked_of(state):
    return json.dumps([state.get(name) for name in ("question", "text", "items", "rounds")])
"""
