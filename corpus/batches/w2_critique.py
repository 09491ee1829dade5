"""Solves a problem of GSM8K, criticises the solution and revises it: a chain of 3 calls (`corpus.papers.reflect`)."""

from __future__ import annotations

from corpus.papers.reflect import build, inputs, prepare

PAPER = "Halo, table 2, W2; ablation in table 3"
CALLS = 3

__all__ = ["CALLS", "PAPER", "build", "inputs", "prepare"]
