"""Models with random weights, for machines where no real ones can be had: their speed is real, what they say is not.

The shapes are those of published models, so a figure measured on one holds for the model it is named after.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accel.errors import ConfigurationError

VOCABULARY = 49_152
CONTEXT_TOKENS = 8192
LANGUAGE_MODELS = {
    # hidden size, size of the feed-forward layer, layers, heads, key-value heads
    "135m": (576, 1536, 30, 9, 3),
    "360m": (960, 2560, 32, 15, 5),
    "1.7b": (2048, 8192, 24, 32, 32),
    "7b": (4096, 14336, 32, 32, 8),
}
EMBEDDING_MODEL = (384, 1536, 6, 12)
"""Of all-MiniLM-L6-v2; layers and heads as above."""
INITIAL_RANGE = 0.1
"""Larger than for training: with it, what comes next depends on more than the last token."""
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def language_model(folder: Path, size: str, texts: Iterable[str]) -> Path:
    """Write a model of this size, with a tokenizer of these texts, in Hugging Face format; returns the folder."""
    if size not in LANGUAGE_MODELS:
        raise ConfigurationError(f"There is no size {size!r}.", f"one of {', '.join(LANGUAGE_MODELS)}")
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    hidden, inner, layers, heads, kv_heads = LANGUAGE_MODELS[size]
    tokenizer = _tokenizer(texts)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=CONTEXT_TOKENS,
        initializer_range=INITIAL_RANGE, tie_word_embeddings=False, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None, pad_token_id=None, dtype="bfloat16",
    )  # fmt: skip
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def embedding_model(folder: Path, texts: Iterable[str]) -> Path:
    """Write a model that sentence-transformers takes with mean pooling; returns the folder."""
    import torch
    from transformers import BertConfig, BertModel

    hidden, inner, layers, heads = EMBEDDING_MODEL
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=inner, initializer_range=INITIAL_RANGE,
    )  # fmt: skip
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    _tokenizer(texts).save_pretrained(folder)
    return folder


def _tokenizer(texts: Iterable[str]) -> Any:
    """Byte-level BPE of these texts. What is missing to the full vocabulary are made-up words, some of which end a
    line: they are never encoded, but a random model says them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<|end|>", "<|start|>", "<|pad|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learnt.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY // 2, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    vocabulary = learnt.get_vocab()
    dice = random.Random(0)
    newline = "\u010a"  # as byte-level BPE writes it
    while len(vocabulary) < VOCABULARY:
        word = "\u0120" + "".join(dice.choice("bcdfghklmnprstvz") + dice.choice("aeiou") for _ in range(4))
        vocabulary.setdefault(word + (newline if len(vocabulary) % 16 == 0 else ""), len(vocabulary))
    tokenizer = Tokenizer.from_str(_with_vocabulary(learnt.to_str(), vocabulary))
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>", chat_template=TEMPLATE
    )


def _with_vocabulary(tokenizer: str, vocabulary: dict[str, int]) -> str:
    import json

    content = json.loads(tokenizer)
    content["model"]["vocab"] = vocabulary
    return json.dumps(content)
