"""A report as numbers and texts, for programs. The keys are documented in docs/report.md and stay."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..run.calls.batch import Batch
    from ..run.gains.caps import CapNow
    from ..run.plans.tally import Request
    from .declarations import Declaration
    from .measured import Measured
    from .rows import Row

FORMAT = 1
"""Another number if a key goes or means something else."""


def to_dict(report: Measured) -> dict[str, Any]:
    counts = report.counts
    return {
        "format": FORMAT,
        "state": report.state,
        "runs": {
            "followed": report.runs,
            "passed": report.passed,
            "passed_for": report.passed_for,
            "measured": len(report.requests),
        },
        "per_request": {
            "seconds": report.took_s,
            "seconds_without_early_calls": report.alone_s,
            "saved_s": report.saved_s,
            "ratio": report.ratio,
            "accel_processor_s": report.own_s,
        },
        "deadlines": {"runs": report.deadlines.runs, "met": report.deadlines.met},
        "last": _request(report),
        "calls": {
            "demanded": counts.demanded,
            "issued": counts.issued,
            "retired": counts.retired,
            "shared": counts.shared,
            "only_fed_predictions": counts.fed,
            "mispredicted": counts.missed,
            "turned_away": counts.turned_away,
            "prompts_prefilled_in_parts": counts.prefills,
            "delayed": counts.delayed,
            "delayed_s": counts.delayed_s,
        },
        "waste": {
            "calls": counts.wasted,
            "seconds": counts.wasted_s,
            "tokens": counts.wasted_tokens,
            "input_tokens": counts.wasted_input_tokens,
            "output_tokens": counts.wasted_output_tokens,
            "share_of_tokens": report.wasted_share,
        },
        "caps": [_cap(each) for each in report.caps],
        "batch": _batch(report.batch) if report.batch is not None else None,
        "money_per_request": report.money,
        "gains": [_gain(each) for each in report.declarations],
        "gains_together_s": report.advice.gain_s,
        "declared_in_vain": report.unseen,
        "lines": [_line(row) for row in report.rows],
    }


def _batch(batch: Batch) -> dict[str, Any]:
    return {
        "inputs": batch.inputs,
        "from_journal": batch.resumed,
        "seconds": batch.took_s,
        "calls_not_made": batch.calls,
        "seconds_of_such_calls": batch.seconds,
        "input_tokens": batch.tokens[0],
        "output_tokens": batch.tokens[1],
        "made_again_in_other_contexts": batch.apart,
    }


def _request(report: Measured) -> dict[str, Any] | None:
    last: Request | None = report.last
    if last is None:
        return None
    return {
        "seconds": last.took_s,
        "seconds_without_early_calls": last.alone_s,
        "saved_s": last.saved_s,
        "calls": last.calls,
        "early": last.early,
        "input_tokens": last.input_tokens,
        "output_tokens": last.output_tokens,
        "limit_s": report.limit_s,
        "limit_is_of_measured_engines": report.limit is not None,
    }


def _cap(now: CapNow) -> dict[str, Any]:
    cap = now.cap
    return {
        "window_s": cap.window_s,
        "per": cap.per or None,
        "calls": now.calls,
        "of_calls": cap.calls,
        "tokens": now.tokens,
        "of_tokens": cap.tokens,
        "money": now.money if cap.money is not None else None,
        "of_money": cap.money,
        "values": now.values,
        "used_up": now.used_up,
        "requests_held": now.held_runs,
    }


def _gain(declaration: Declaration) -> dict[str, Any]:
    return asdict(declaration)


def _line(row: Row) -> dict[str, Any]:
    return {
        "where": row.where,
        "nodes": list(row.nodes),
        "what": row.what,
        "calls": row.calls,
        "calls_of_the_line_itself": row.made,
        "uses_of_tools": row.uses,
        "early": row.early,
        "saved_s": row.saved_s,
        "took_s": row.took_s,
        "not_early": [asdict(late) for late in row.late],
        "early_since_request": row.since or None,
        "early_in_requests": row.early_runs,
        "made_in_requests": row.made_runs,
        "of_requests": row.runs,
    }
