"""What an answer may be, compiled by xgrammar into the tokens that may come next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel.engine import Constraint
from accel.errors import InvalidRequest
from accel_transformers.schemas import REMEDY, check_schema

CACHE_BYTES = 2**26
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", **{chr(code): f"\\u{code:04x}" for code in (*range(32), 127)}})


class Constraints:
    """Not thread-safe: used by one thread. `vocabulary`: as many tokens as the model has outputs."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._ends = list(ends)
        self._compiler: Any = None

    def matcher(self, constraint: Constraint) -> Any:
        """An xgrammar.GrammarMatcher at its beginning. Milliseconds; up to seconds for a large schema.

        Raises InvalidRequest if it is no constraint, or can't be enforced.
        """
        try:
            import xgrammar
        except ImportError as error:
            raise InvalidRequest(
                "Constraints on the output need xgrammar, which is not installed.",
                "pip install 'accelgraph[transformers]', or serve the model with vLLM (accel_vllm)",
            ) from error
        if not self._ends:
            raise InvalidRequest("A model without a token that ends its answer can't follow constraints.")
        try:
            if self._compiler is None:
                info = xgrammar.TokenizerInfo.from_huggingface(
                    self._tokenizer, vocab_size=self._vocabulary, stop_token_ids=self._ends
                )
                self._compiler = xgrammar.GrammarCompiler(info, cache_limit_bytes=CACHE_BYTES)
            return xgrammar.GrammarMatcher(self._compile(xgrammar, constraint))
        except (RuntimeError, ValueError, TypeError) as error:
            # How xgrammar rejects what it can't parse.
            raise InvalidRequest(f"The {constraint.kind} constraint is rejected: {error}", REMEDY) from error

    def _compile(self, xgrammar: Any, constraint: Constraint) -> Any:
        match constraint.kind:
            case "json_schema":
                check_schema(str(constraint.value))
                return self._compiler.compile_json_schema(str(constraint.value))
            case "regex":
                return self._compiler.compile_regex(str(constraint.value))
            case "choice":
                return self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(_alternatives(constraint.value)))


def _alternatives(choices: Sequence[str]) -> str:
    """As a grammar in xgrammar's EBNF."""
    if not choices or isinstance(choices, str):
        raise InvalidRequest("A choice needs at least one allowed answer.")
    return "root ::= " + " | ".join(f'"{str(choice).translate(ESCAPES)}"' for choice in choices)
