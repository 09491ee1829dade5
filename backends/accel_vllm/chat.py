"""From messages to token ids, and from unfinished messages to the ids that are already certain."""

from collections.abc import Sequence
from typing import Any

from accel.engine import ChatMessage, Prompt
from accel.errors import InvalidRequest

# Put where the unknown rest of a content would be, to find that place in the rendered prompt. Private-use characters:
# no template treats them specially, and they do not occur in text.
_MARK = "\ue0a1\ue0a2"
# Ways a text may go on: a word's end, a new word, a line, punctuation, a digit. Ids that survive all are certain.
_CONTINUATIONS = ("", "e", " e", "\n", ".", "1", "  ")


class PromptEncoder:
    """Thread-safe if the tokenizer's public methods are, as those of vLLM's tokenizers are."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self._ids(prompt, special=True)
        if all(isinstance(item, int) for item in prompt):
            return [item for item in prompt if isinstance(item, int)]
        return self._ids(self._render([item for item in prompt if not isinstance(item, int)], answer=True))

    def encode_prefix(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The content is cut at its last word boundary, because the next characters may change how its end is split."""
        if not messages or not isinstance(messages[-1].get("content"), str):
            return []
        marked = [*messages[:-1], {**messages[-1], "content": messages[-1]["content"] + _MARK}]
        rendered = self._render(marked, answer=False)
        if rendered.count(_MARK) != 1:
            return []
        known = rendered[: rendered.index(_MARK)]
        certain = self._ids(known)
        for continuation in _CONTINUATIONS:
            certain = _common_prefix(certain, self._ids(known + continuation))
        # A longer word may swallow the last one: what precedes the last word must stay, whatever that word becomes.
        boundary = len(known.rstrip()) - len(known.rstrip().split()[-1]) if known.strip() else 0
        return _common_prefix(certain, self._ids(known[:boundary].rstrip()))

    def _render(self, messages: Sequence[ChatMessage], *, answer: bool) -> str:
        turns = [dict(message) for message in messages]
        tools = turns[0].pop("tools", None) if turns else None
        try:
            return str(
                self._tokenizer.apply_chat_template(turns, tools=tools, tokenize=False, add_generation_prompt=answer)
            )
        except Exception as error:
            # Templates are programs of the model's author and raise anything.
            raise InvalidRequest(f"The model's chat template rejects these messages: {error}") from error

    def _ids(self, text: str, *, special: bool = False) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=special))


def _common_prefix(left: list[int], right: list[int]) -> list[int]:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return left[:index]
    return left[: len(right)]
