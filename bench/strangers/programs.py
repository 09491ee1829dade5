"""What is known of a public program, and how it is loaded from a checkout: as its author wrote it.

None of its code is here. A notebook's cells run in their order, each statement of the outermost level by itself, so
that one that fails (a picture, a download) leaves the rest alone; it is told which. Modules are imported from the
checkout, in a folder of its own, where what they read was put.
"""

from __future__ import annotations

import ast
import asyncio
import getpass
import inspect
import json
import os
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.strangers import stand_ins
from bench.strangers.services import Manner

FOLDER = "ACCEL_STRANGERS"
"""The environment variable that names the folder with checkouts: `OWNER+NAME`, each with a work tree."""
KEYS = (
    "OPENAI ANTHROPIC GOOGLE GEMINI TAVILY COHERE GROQ MISTRAL FIREWORKS TOGETHER LANGCHAIN LANGSMITH NEWS SERPER "
    "DEEPSEEK XAI PINECONE LLAMA_CLOUD EXA HUGGINGFACEHUB OPENROUTER FINANCIAL_DATASETS"
).split()
"""Of services: `..._API_KEY` is set for each."""
TRIES = frozenset("invoke ainvoke stream astream batch query aquery retrieve aretrieve chat".split())
"""Methods that ask something of a graph, a chain or an engine."""
SUBJECTS = (
    "tidal energy", "urban beekeeping", "the Silk Road", "vertical farming", "sleep and memory", "medieval guilds",
    "coral reefs", "high-speed rail", "fermented food", "volcanic soil", "satellite navigation", "public libraries",
    "glass recycling", "the history of tea", "alpine glaciers", "folk music",
)  # fmt: skip


@dataclass(frozen=True)
class Stranger:
    """One public program."""

    name: str
    about: str
    repository: str
    """owner/name."""
    commit: str
    licence: str
    path: str
    """Of its file or folder in the repository."""
    load: Callable[[Loader], Any]
    """What to accelerate, from the checkout."""
    value: Callable[[str], Any]
    """What it is asked, about a subject."""
    manner: Manner = field(default_factory=Manner)
    replaced: str = "network: OpenAI"
    awaited: bool = False
    framework: str = "LangGraph"
    config: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """What it reads: path where it runs, path in the checkout."""
    ask: Callable[[Any, Any, Mapping[str, Any]], Any] | None = None
    """How the program is run, if not as its framework does."""
    approves: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """What a person says when the program has paused, before it goes on."""

    @property
    def folder(self) -> str:
        return self.repository.replace("/", "+")


class Loader:
    """Runs a program's own code."""

    def __init__(self, stranger: Stranger, checkout: Path, runner: asyncio.Runner) -> None:
        self.stranger, self.checkout, self.runner = stranger, checkout, runner
        self.failed: list[str] = []
        """Statements of notebooks that raised, and what."""
        self.path = checkout / stranger.path
        self.scratch = Path(tempfile.mkdtemp(prefix="stranger-")) / "run"
        self.scratch.mkdir()
        for here, there in stranger.files.items():
            target = self.scratch / here
            target.parent.mkdir(parents=True, exist_ok=True)
            source = checkout / there
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)

    def program(self) -> Any:
        prepare()
        os.chdir(self.scratch)
        return self.stranger.load(self)

    def module(self, name: str, root: str = "") -> Any:
        """Imported from this folder of the checkout."""
        folder = str(self.checkout / root)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return import_module(name)

    def notebook(self, skip: Sequence[str] = (), until: str = "", path: str = "") -> Any:
        """The module that the notebook's cells make, up to the one in which `until` stands. Statements that run
        something are left out: they only show what the program does; and so are those in which one of `skip` stands."""
        file = self.checkout / path if path else self.path
        module = types.ModuleType("notebook")
        module.__file__ = str(file)
        sys.modules["notebook"] = module
        for number, source in enumerate(cells(file)):
            self._cell(module, source, f"{file.stem}[{number}]", skip)
            if until and until in source:
                break
        return module

    def script(self, path: str = "") -> Any:
        """The module that a file's statements make, one by one: scripts ask and print on the way."""
        file = self.checkout / path if path else self.path
        module = types.ModuleType(file.stem)
        module.__file__ = str(file)
        sys.modules[file.stem] = module
        self._cell(module, file.read_text(encoding="utf-8"), file.name, ())
        return module

    def imported(self) -> dict[str, Any]:
        """What the program's modules know by name, where its author would paste a line."""
        return {
            name: value
            for module in list(sys.modules.values())
            if (file := getattr(module, "__file__", None)) and Path(file).is_relative_to(self.checkout)
            for name, value in list(vars(module).items())
        }

    def _cell(self, module: types.ModuleType, source: str, name: str, skip: Sequence[str]) -> None:
        try:
            statements = ast.parse(source).body
        except SyntaxError as error:
            self.failed.append(f"{name}: {error}")
            return
        import linecache

        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        for statement in statements:
            if _tries(statement) or any(text in (ast.get_source_segment(source, statement) or "") for text in skip):
                continue
            body = ast.Module([statement], [])
            code = compile(body, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            try:
                made = eval(code, module.__dict__)  # noqa: S307 - it is a program
                if inspect.iscoroutine(made):
                    self.runner.run(made)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a public program raises
                self.failed.append(f"{name}:{statement.lineno}: {type(error).__name__}: {error}"[:300])


def _tries(statement: ast.stmt) -> bool:
    """Whether it asks something of a graph, a chain or an engine by itself: what functions do is for later."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TRIES:
            return True
        todo += ast.iter_child_nodes(node)
    return False


def cells(file: Path) -> list[str]:
    """Code of a notebook, without commands of the shell and of IPython."""
    found = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        if source.lstrip().startswith("%%") and not source.lstrip().startswith(("%%time", "%%capture")):
            continue
        lines = source.splitlines()
        found.append("\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines))
    return found


def prepare() -> None:
    """What a program takes for granted: keys, IPython, tokens of models, nobody at the keyboard."""
    for name in KEYS:
        os.environ[f"{name}_API_KEY"] = f"key-of-{name.lower()}"
    os.environ |= {"LANGCHAIN_TRACING_V2": "false", "LANGSMITH_TRACING": "false", "USER_AGENT": "strangers"}
    getpass.getpass = lambda *args, **options: "key"
    _ipython()
    stand_ins.install()
    _pictures()
    _tokens()


def _ipython() -> None:
    def nothing(*args: Any, **options: Any) -> None: ...

    outer, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    for name in ("display", "Image", "Markdown", "HTML", "JSON", "Pretty", "clear_output", "Audio", "SVG"):
        setattr(inner, name, nothing)
    outer.display, outer.get_ipython = inner, nothing  # type: ignore[attr-defined]
    sys.modules |= {"IPython": outer, "IPython.display": inner}


def _pictures() -> None:
    from langchain_core.runnables.graph import Graph

    Graph.draw_mermaid_png = lambda *args, **options: b""  # type: ignore[method-assign]


def _tokens() -> None:
    """LlamaIndex brings the vocabularies that tiktoken would download."""
    try:
        import llama_index.core
    except ImportError:
        return
    cached = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cached)
    import tiktoken

    # Only lengths are asked of it: any vocabulary does.
    tiktoken.registry.ENCODINGS["gpt2"] = tiktoken.get_encoding("cl100k_base")


__all__ = ["FOLDER", "SUBJECTS", "Loader", "Stranger", "cells", "chdir", "prepare"]
