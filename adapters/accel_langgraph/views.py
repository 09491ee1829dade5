"""LangChain's messages, documents and answers as trees, and back."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.messages.base import TextAccessor
from langchain_core.outputs import ChatResult
from langchain_core.prompt_values import PromptValue
from pydantic.fields import FieldInfo

from accel.parts.identities.reads import names_in
from accel.text.classes import of_class
from accel.text.objects import is_a
from accel.text.values import Tree, add_lookalike, add_view, class_name, class_named, snapshot, whole

_CONTAINERS = (dict, list)
_FRAMEWORK_ID = re.compile(r"^((lc_)?run-.*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$")


def view_message(message: BaseMessage) -> Tree:
    """A message as a tree: its class and every field that isn't empty as usual, without an id that the framework made
    up."""
    return _without_made_up_id(view_identified(message))


def view_messages(messages: Any, component: Any) -> Tree:
    """The input of a model, which is sent no id of the framework's, unless it is the program's own and looks for
    ids."""
    tree = snapshot(messages, exact=True)
    if not is_a(tree, list) or not _TELL_IDS.isdisjoint(names_in(component)):
        return tree
    return [_without_made_up_id(each) for each in tree]


_TELL_IDS = frozenset(
    ".__dict__ .dict .id .model_dump .model_dump_json .to_json "
    "dumpd dumps include_id= message_to_dict messages_to_dict pickle vars".split()
)
"""By one of these names code comes to a message's id. What takes the text of a whole message (`repr`) says something
else in every run, by ids that nobody can know."""


def _without_made_up_id(tree: Tree) -> Tree:
    """The tree of a message, which is changed."""
    if is_a(tree, dict) and is_made_up(tree.get("id")):
        del tree["id"]
    return tree


def is_made_up(identifier: Any) -> bool:
    """Whether the framework gave it to a message that had none."""
    return is_a(identifier, str) and _FRAMEWORK_ID.match(identifier) is not None


def view_identified(message: BaseMessage) -> Tree:
    """The same with its id, whoever made it up: functions of the program look messages up by it."""
    tree: dict[str, Tree] = {"message": class_name(message), "content": message.content}
    cls: Any = type(message)
    for field, usual in _beside_content(cls):
        value = getattr(message, field)
        empty = value is None or value is False or (is_a(value, _CONTAINERS) and not value)
        if not (empty and type(value) is type(usual) and not usual):
            tree[field] = value
    extra = message.model_extra
    if extra:
        tree["extra"] = dict(extra)
    return tree


@of_class
def _beside_content(cls: type[BaseMessage]) -> tuple[tuple[str, Any], ...]:
    """The fields, and what each is where nobody says."""
    fields = cls.model_fields.items()
    return tuple((name, _usual(field)) for name, field in fields if name not in ("content", "type"))


def _usual(field: FieldInfo) -> Any:
    made: Any = field.default_factory
    return field.default if made is None else made() if made in _CONTAINERS else made


def build_message(tree: Tree) -> BaseMessage:
    """The message that `view_identified` saw."""
    fields = {key: value for key, value in tree.items() if key not in ("message", "extra")}
    return class_named(tree["message"], BaseMessage)(**fields, **tree.get("extra", {}))


def view_document(document: Document) -> Tree:
    cls: Any = type(document)
    fields = {name: getattr(document, name) for name in _of_document(cls)}
    return {"document": class_name(document), **fields, **(document.model_extra or {})}


@of_class
def _of_document(cls: type[Document]) -> tuple[str, ...]:
    return ("page_content", "metadata", "id", *(name for name in cls.model_fields if name not in Document.model_fields))


def build_document(tree: Tree) -> Document:
    fields = {key: value for key, value in tree.items() if key != "document"}
    return class_named(tree["document"], Document)(**fields)


_PROMPT = "prompt value"


def view_prompt(prompt: PromptValue) -> Tree:
    """What a prompt template gives to what stands behind it."""
    cls: Any = type(prompt)
    fields = {name: getattr(prompt, name) for name in cls.model_fields if name != "type"}
    return {_PROMPT: class_name(prompt), **fields}


def build_prompt(tree: Tree) -> PromptValue:
    base: Any = PromptValue
    made: PromptValue = class_named(tree[_PROMPT], base)(**{key: tree[key] for key in tree if key != _PROMPT})
    return made


add_view(PromptValue, view_prompt, _PROMPT, build_prompt, exact=whole(view_prompt))
add_view(
    BaseMessage, view_message, "message", build_message, ("response_metadata", "usage_metadata"), whole(view_identified)
)
add_view(Document, view_document, "document", build_document, exact=whole(view_document))
add_lookalike(TextAccessor, str)  # what `message.text` gives


def view_answer(result: ChatResult) -> Tree:
    """The answer as a message, with what LangChain makes its `response_metadata`; further choices beside it."""
    if not result.generations:
        return None
    first = result.generations[0]
    tree: dict[str, Tree] = view_message(first.message)
    del tree["message"]
    alone = result.llm_output if len(result.generations) == 1 else None
    said = {**(alone or {}), **(first.generation_info or {}), **first.message.response_metadata}
    tree |= {"response_metadata": said} if said else {}  # an empty one is none, as in messages
    tree = {name: snapshot(value) for name, value in tree.items()}
    if len(result.generations) > 1:
        tree["choices"] = [snapshot(generation.message.content) for generation in result.generations[1:]]
    return tree
