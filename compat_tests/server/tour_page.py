"""`python -m compat_tests.server.tour_page` runs every command of docs/tour.md, and writes the page with what they say.

`--python ENVIRONMENT/bin/python`: of the environment that they run in, such as a new one with Accel's wheel; left out:
this one. The model server is one of its own, at a port that is free.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from examples.serving.processes import ROOT, model_server

HERE = ROOT / "examples" / "tour"
PAGE = ROOT / "docs" / "tour.md"
PICTURES = ROOT / "docs" / "pictures"
TIME_S = 300
WIDTH = 120
PACKAGES = "langgraph", "langchain-core", "langchain-openai", "llama-index-core", "llama-index-llms-openai"
_VERSIONS = f"import importlib.metadata as m; print(*(f'{{p}} {{m.version(p)}}' for p in {PACKAGES}), sep=', ')"

HEAD = """# In one sitting

You get what each command says, from the installation to the report, on three programs as the frameworks' own tutorials
write them: a RAG graph that gains, an agent that doesn't, and a query engine of LlamaIndex that does. This page is
written by `python -m compat_tests.server.tour_page`, which runs all of it.

## Install

```sh
pip install 'accelgraph[langgraph,llamaindex]'
pip install numpy langchain-openai llama-index-llms-openai llama-index-embeddings-openai
```

The programs are in [examples/tour](../examples/tour), and the commands below run in that folder. The models are those
of any server that speaks OpenAI's protocol: `local.env` names it. Here it is the repository's own, which answers at
random, but always the same, after 0.05 to 0.3 s (`pip install fastapi uvicorn`):

```sh
python -m uvicorn --factory examples.serving.model_server:create_app --port 8001
```

With OpenAI's own address in its place, more calls wait for a permission of yours: `accel report` says for which ones,
and what they would gain ([remote models](services.md)).
"""


@dataclass(frozen=True)
class Part:
    """A program of the page, and what is said between its commands."""

    title: str
    about: str
    program: str
    inputs: str
    said: Mapping[str, str]
    """What is said before the output of a command, and after its name "after"."""

    @property
    def name(self) -> str:
        return self.program.partition(".")[0]

    def commands(self) -> dict[str, str]:
        on = f"{self.program} --inputs {self.inputs} --env-file local.env"
        found = {name: f"accel {name} {on}" for name in ("check", "bench", "report", "explain")}
        return {**found, "timeline": f"accel timeline {on} --measured --out {self.name}.svg"}


PARTS = (
    Part(
        "A RAG graph",
        "[rag.py](../examples/tour/rag.py) retrieves four documents, has each graded in a loop, and answers from those "
        "that help. A grade needs only its document and the question, so all can be asked for at once.",
        "rag.py:graph",
        "questions.jsonl",
        {
            "check": "Is it the same? Every input is asked eight times, unmodified and accelerated, streamed and not.",
            "bench": "How much faster is it?",
            "report": "Where does it come from, and what would gain more? From Python: `print(accel.report(fast))`.",
            "explain": "What waits for what?",
            "timeline": "And when did each call run? The first row is what ran unmodified, on the same input.",
            "after": "In your program it is one line: `graph = accel.accelerate(graph)`.",
        },
    ),
    Part(
        "An agent with tools",
        "[agent.py](../examples/tour/agent.py) asks the model, runs the tool that it names, and asks it again with the "
        "answer. Each call needs the one before: there is next to nothing to gain, and every command says so.",
        "agent.py:graph",
        "messages.jsonl",
        {
            "check": "",
            "bench": "",
            "report": "The line that it advises is for you to judge: only you know that the handbook isn't written to "
            "while a request runs.",
            "explain": "",
            "timeline": "",
            "after": "Leave such a program as it is, or accelerate it for the tools that work long.",
        },
    ),
    Part(
        "A query engine",
        "[sub_questions.py](../examples/tour/sub_questions.py) has a question split into one for each of three "
        "indexes, and each is embedded, searched and answered before the next. None of them needs another's answer.",
        "sub_questions.py:query_engine",
        "reports.jsonl",
        {
            "check": "The program is named by the function that makes it.",
            "bench": "",
            "report": "",
            "explain": "Its calls are made inside LlamaIndex, so that parts of the engine stand in the place of lines.",
            "timeline": "",
            "after": "In your program: `engine = accel.accelerate(engine)`.",
        },
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="whose environment is used")
    python = Path(os.path.abspath(parser.parse_args().python))  # its links lead out of the environment
    server = model_server()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(shutil.copytree(HERE, Path(scratch) / "tour"))
            PAGE.write_text("\n".join(page(python, folder, f"{server.url}/v1")), encoding="utf-8")
    finally:
        server.kill()
    return 0


def page(python: Path, folder: Path, url: str) -> Iterator[str]:
    """Its lines. `folder`: where commands run, and what they draw is left."""
    yield HEAD
    versions = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True).stdout.strip()
    yield f"{fill(f'The outputs are of {versions}.', WIDTH)}\n"
    for part in PARTS:
        yield f"## {part.title}\n\n{fill(part.about, WIDTH)}\n"
        for name, command in part.commands().items():
            if part.said[name]:
                yield f"{fill(part.said[name], WIDTH)}\n"
            yield f"```text\n$ {command}\n{said(python, command, folder, url)}\n```\n"
        drawn = f"tour_{part.name}.svg"
        shutil.copy(folder / f"{part.name}.svg", PICTURES / drawn)
        yield f"![{part.title}: a request before and after](pictures/{drawn})\n\n{part.said['after']}\n"
    yield (
        "## And then\n\n[What `check` and `bench` compare](check.md), [what the report says](report.md), "
        "[what to do where nothing is early](troubleshooting.md).\n"
    )


def said(python: Path, command: str, folder: Path, url: str) -> str:
    """What a command prints. Raises where it fails."""
    words = shlex.split(command)
    surroundings = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python.with_name(words[0]), *words[1:]],
        cwd=folder, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIME_S,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout.rstrip()


if __name__ == "__main__":
    sys.exit(main())
