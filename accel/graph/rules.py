"""What may hold an early call back: every rule with its name, its sentence, and what lifts it.

Whoever asks gets a `Reason`, and looks at its rule, never at its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Lift:
    """A declaration or option of the user's."""

    name: str
    line: str
    """To paste; `component`: a class; `program`: what was accelerated."""
    sure: str
    """What one must be sure of."""


PURE = Lift(
    "pure",
    "accel.register({component}, pure=True)",
    "answers of {component} don't depend on earlier calls, and calls change nothing",
)
READONLY = Lift(
    "readonly", "accel.register({component}, readonly=True)", "nobody changes what any {component} reads during a run"
)
READS_SIDE_BY_SIDE = Lift(
    "readonly",
    "accel.register({component}, readonly=True, concurrency={calls})",
    "nobody changes what any {component} reads during a run, and {calls} threads may be inside one",
)
"""Of what a run uses several times."""
CONCURRENCY = Lift(
    "concurrency",
    "accel.register({component}, concurrency={calls})",
    "{calls} threads may be inside one {component}: early calls begin while fewer are, the program's own whenever it "
    "makes them",
)
TWINS = Lift(
    "twins",
    "accel.register({component}, twins=True)",
    "plain methods of {component} give what its coroutines do: they run early where there is no event loop",
)
LOCAL = Lift(
    "local", "accel.register({component}, local=True)", "what {component} is sent stays on your own network ({address})"
)
INPUTS = Lift(
    "egress",
    'accel.accelerate({program}, egress="inputs")',
    "{component} may get values before the program sends them, also if it then doesn't",
)
LIKELY = Lift(
    "likely",
    'accel.accelerate({program}, speculate="likely")',
    "calls that the program then doesn't make may be paid for",
)
STREAMING = Lift(
    "streaming",
    "{component}(..., streaming=True)",
    "the pieces of an answer of {component}, put together, are the whole answer",
)
STREAMS_EQUAL = Lift(
    "streaming",
    "accel.register({component}, streams_equal=True)",
    "the pieces of an answer of {component}, put together, are the whole answer, usage and all",
)
SCOPE = Lift(
    "plan_scope",
    "accel.accelerate({program}, plan_scope=tenant)",
    "all requests of one `tenant` may learn from each other, whatever else comes in beside their input",
)
PURE_FUNCTION = Lift(
    "pure", "{component} = accel.pure({component})", "{component} only computes its result, and changes nothing"
)
PURE_CONCURRENCY = Lift(
    "concurrency",
    "{component} = accel.pure({component}, concurrency={calls})",
    "{calls} threads may be inside {component}: early calls begin while fewer are, the program's own whenever it makes "
    "them",
)
METHOD = Lift(
    "readonly", "accel.register({component}, readonly=True)", "it only reads, and nobody changes that during a run"
)
"""`component`: a class and its methods, or a host."""
CALLS_SIDE_BY_SIDE = Lift(
    "readonly",
    "accel.register({component}, readonly=True, concurrency={calls})",
    "it only reads, nobody changes that during a run, and it takes {calls} calls at a time",
)
"""Of what a run calls several times."""
PURE_NODE = Lift(
    "pure_nodes",
    'accel.accelerate({program}, pure_nodes=["{component}"])',
    "the node {component} only computes its result from the state, and changes nothing",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`sentence` takes the values of a reason."""

    name: str
    sentence: str
    remedy: str = ""
    """What else could be done, for people."""
    lift: Lift | None = None
    lasting: bool = False
    """Nothing that a run does or a user declares lets such a call go."""

    def __call__(self, **values: Any) -> Reason:
        return Reason(self, values)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one call is held."""

    rule: Rule
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        sentence = self.rule.sentence.format(**self.values)
        return f"{sentence}; {self.rule.remedy}" if self.rule.remedy else sentence


_SCOPE = "if tenants differ in it, give each its own plan: accelerate(..., plan_scope=tenant)"

# --- the run and what was learnt
OVER = Rule("over", "the run is over, or a node of it raised")
UNVERIFIED = Rule("unverified", "not verified yet: needs two runs with different inputs, or three for what is computed")
FORMER = Rule("former", "no longer what the program was last seen to do")
CONTEXT = Rule("context", "{dimension} is new here, and no two runs have shown that it doesn't matter", _SCOPE)
FOREIGN = Rule(
    "foreign text",
    "its input holds text that is neither the program's nor a known value; {dimension} is new",
    _SCOPE,
    lasting=True,
)
UNSEEN = Rule("unseen loop", "none of its calls has ended yet")
SOMETIMES = Rule("sometimes", "not demanded in every run so far")
UNDECIDED = Rule("undecided", "not decided yet, or in a way that two runs have not shown: {when}")
WRONG = Rule("wrong", "runs have done without early calls like it, so it is not certain")
UNLIKELY = Rule("unlikely", "its chance is {chance:.0%} by the runs so far, and calls of less than one half wait")
NOT_WORTH = Rule(
    "not worth it",
    "it may gain less than it may waste: by the runs so far {saves_s:.3f} s with a chance of {chance:.0%}, else "
    "{cost_s:.3f} s in vain",
)
WASTE = Rule(
    "waste",
    "it may not be demanded, and the waste of such calls is to stay below {share:.0%} of what the program takes",
    "Budget(waste=...) sets another bound",
)
COMPOSITE = Rule("composite", "a composite: its inner calls are issued instead")
REPLACED = Rule(
    "replaced", "the program's state has replaced what the run was given, which no run so far had done by then"
)
EITHER = Rule("either", "{one} and {other} of the input were the same in all runs so far: the program may go by either")
BEYOND = Rule("beyond", "more elements than any run so far had")

# --- order
AT_ONCE = Rule("at once", "its input is complete no sooner than the program makes the call", lasting=True)
UNWRITTEN = Rule("write", "waits for {node} to be written")
IN_ORDER = Rule("in order", "waits for the element before it")
TWICE = Rule("twice", "it is equal to a call of another element, and no run has made such a call twice")

# --- control
BARRIER = Rule("barrier", "node {node!r} has raised or paused a run there, or is a guard, as middleware may be")
CACHING = Rule("cache inside", "a cache may answer inside node {node!r}")
CACHED = Rule("cached node", "a cache may answer instead of node {node!r}")
LEG = Rule("leg", "it comes before a pause of node {node!r}, or after one, and the node goes on elsewhere")
BRANCH = Rule("branch", "node {node!r} may not run")
OUTSIDE = Rule("outside", "node {node!r} is not part of the graph")
PAUSES = Rule("pause", "the run pauses before node {node!r}")
PAUSES_AFTER = Rule("pause after", "the run pauses after node {node!r}")
STOPS = Rule("stop", "node {node!r} comes before and may stop the run")

# --- components
UNUSED = Rule(
    "unused",
    "its component was not used in this run yet; before that, only one is called early that the graph itself holds, "
    "neither made in a node nor chosen from a list or dict of several, in a context that was seen, with a key that "
    "nobody changed; one whose key a function gives is left to the program",
    lasting=True,
)
OTHER = Rule(
    "other component",
    "{component} is another one than those that it was learnt with: {field} is new, which may be a part of its input",
)
UNVOUCHED = Rule("not vouched for", "{component} is not called early: {why}", lift=PURE)
UNFIT = Rule("unfit", "{why}")
MOVED = Rule(
    "context set",
    "the program sets {name} before it, and an early call would see what was there when the run began",
    "set it before the run, or pass it in the input",
)
FAILING = Rule("failing", "calls of its component have failed in this run")
TELLS = Rule("tells", "its component {how}")
FEEDS = Rule(
    "only feeds",
    "an early search would only feed predictions, and such were in the way of the program's own",
    lift=READONLY,
)
NOTHING_BEHIND = Rule(
    "nothing behind", "an early search would only feed predictions, and no call is predicted from it", lift=READONLY
)
UNSENT = Rule(
    "unsent",
    "an early search would only feed predictions of calls that may not be sent what it finds yet; {lifted}",
)
GUARDED = Rule(
    "guarded",
    "the callback handler {handler} is asked before each call, and may stop it; {lifted}",
)
CACHE = Rule("cache", "a cache may answer it", lasting=True)
LIMITER = Rule("rate limiter", "has a rate limiter", lasting=True)
EGRESS = Rule(
    "egress",
    "its endpoint has not seen all values yet",
    'accelerate(..., egress="inputs") would allow it',
    lift=INPUTS,
)
UNMET = Rule(
    "unmet",
    "this request has made no call of its component yet, and one like that of an earlier request is sent only what its "
    "endpoint has seen in this one",
    lasting=True,
)
BUSY = Rule("busy", "its component is busy", lift=CONCURRENCY)
LIMITED = Rule(
    "limited",
    "its endpoint has turned calls away (429 or the like); with early ones it is sent {calls} at a time for now",
    "accel.register(..., concurrency=n), with what it takes, avoids that, and so does a rate limiter, behind which "
    "nothing is early",
)
CHANGED = Rule("changed", "its component changed")
OVERLAID = Rule("overlaid", "somebody has put another function in the place of its method")
NO_TWIN = Rule("no twin", "no coroutine of it can run early here", lift=TWINS)
UNHEARD = Rule(
    "not streamed yet",
    "whether the program reads it as a stream where somebody listens is not known yet",
    "accel.register(..., streams_equal=True) if its chunks, merged, give the plain answer",
)
UNLOADED = Rule("unloaded", "its input holds an object of a class that is not loaded here", lasting=True)
UNBUILT = Rule("not rebuilt", "its input can't be rebuilt exactly", lasting=True)
MUTABLE = Rule("mutable", "its input holds an object that may change meanwhile", lasting=True)

# --- bounds
BUDGET = Rule("budget", "the budget of early calls is used up")
CAP = Rule("cap", "its cap is used up for now: {cap}")
MAX_CONCURRENCY = Rule("max_concurrency", "max_concurrency is used up")
LATE = Rule("late", "the run is over, or the program has just made this call itself")

# --- inside an early call
INNER = Rule("inner primitive", "it calls {component}, which is a primitive of its own")
INNER_TELLS = Rule("inner tells", "it calls {component}, which {how}")
INNER_EGRESS = Rule("inner egress", "{component} has not seen all values yet", lift=INPUTS)

# --- of calls that a run has made, for reports
UNLEARNT = Rule("not learnt", "{why}")
COMPUTED = Rule(
    "computed",
    "{why}: your code may compute it in {functions}",
    "accel.pure lets a function go that only computes",
)
FIRST_SEEN = Rule("first seen", "no run before made such a call, or too little is known of it yet")
JUST_LEARNT = Rule("just learnt", "learnt from this run: the next ones may have it early")
OTHERWISE = Rule("otherwise", "what was expected is not what was asked for, or came too late")
NOTHING_EARLY = Rule("off", "nothing is issued", 'speculate="auto" lets calls go')
PART = Rule("part", "it is a part of the call of {component} around it, which was not early itself")
WRITES = Rule("writes", "it may change something, so the program alone makes it")
FAILED = Rule("failed", "it raised")
BROKEN_OFF = Rule(
    "broken off", "the request or a node of it raised, or it was stopped, and after that nothing is early"
)
TOO_LONG = Rule("too long", "the request made more than {calls} calls; of such none is worked out")
FED = Rule(
    "fed",
    "an early search only feeds predictions, as somebody may write to {component} meanwhile; the program makes its own",
    lift=READONLY,
)
BEHIND = Rule("behind", "it needs what {line} brought, which was not there sooner")
UNDECLARED_TOOL = Rule("undeclared tool", "nobody said what the tool {component} does", lift=READONLY)
GIVEN_TOOL = Rule(
    "given more",
    "the tool {component} is declared, but takes what its node has at that moment (a config, a state or a runtime), "
    "which an early call has not",
    "pass what it needs as an argument",
)
UNSEEN_CLIENT = Rule(
    "unseen client",
    "nobody said what {component} does, which sent {requests} to {host}: Accel sees no calls of it",
)
MADE_BEFORE = Rule(
    "made before",
    "{component} sent GET requests to {host}, which is declared, by a client that was made before that",
    "make clients after accel.register(...)",
)
LET_BE = Rule(
    "let be",
    "{component} sent GET requests to {host}, which is declared, in a way that Accel lets be: a stream, a body, a "
    "hook, a transport, code for auth, or by another client than those of requests and httpx",
)
OWN_WORK = Rule("own work", "the node's own work, in which Accel sees no calls", lift=PURE_NODE)

RULES = tuple(value for value in dict(globals()).values() if isinstance(value, Rule))
"""All of them, as they are asked."""
