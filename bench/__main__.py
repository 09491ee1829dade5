"""`python -m bench COMMAND`: measures engines and programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

COMMANDS = {
    "profile": "bench.profile:main",
    "fidelity": "bench.fidelity:main",
    "run": "bench.run:main",
    "llamaindex": "bench.llamaindex:main",
    "topology": "bench.topology:main",
    "first-token": "bench.first_token:main",
    "corpus": "bench.corpus:main",
    "overhead": "bench.overhead:main",
    "where": "bench.where:main",
    "memory": "bench.memory:main",
    "ablation": "bench.ablation:main",
    "scale": "bench.scale:main",
    "queue": "bench.queue:main",
    "serve": "bench.serve:main",
    "batch": "bench.batch:main",
    "devices": "bench.batch_devices:main",
    "arrivals": "bench.arrivals:main",
    "strangers": "bench.strangers.command:main",
    "report": "bench.report:main",
    "headline": "bench.headline:main",
}
"""By name, the function that takes the arguments after the name and returns the exit status."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("command", choices=COMMANDS, help="--help after a command says more")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    module, _, name = COMMANDS[chosen.command].partition(":")
    command: Callable[[Sequence[str]], int] = getattr(import_module(module), name)
    return command(chosen.arguments)


if __name__ == "__main__":
    sys.exit(main())
