"""The end of the interpreter: as quick and quiet as without Accel, whatever was going on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PATIENCE_S = 60
PRELUDE = """
import asyncio, atexit, gc, sys, threading

ACCELERATED = sys.argv[1] == "accelerated"
if sys.argv[2] == "a handler from before Accel":
    atexit.register(lambda: print("handler:", program.invoke({"q": "the end"})["b"]))
import accel
from accel.run.ongoing import OPEN
from accel.process.spare import breathe
from accel.process.threads import issuer, learner, spawn
from adapters.tests.core_fakes import TOPICS, Chat, State, StreamingChat, World, chain, three, train

world = World()
model = Chat(world)
world.answer = lambda text: f"answer to <{text}>"


class Last:
    # What the interpreter finalises at its end, when print is gone.
    def __init__(self, print):
        self.print = print

    def __del__(self):
        self.print("last", flush=True)


def same(graph):
    return accel.accelerate(graph) if ACCELERATED else graph


def trained(graph):
    fast = same(graph)
    for topic in TOPICS:
        fast.invoke({"q": topic})
        accel.settle()
    world.forget()
    return fast


def forever(lock=None):
    # Work of Accel's that has not ended at the end, with a lock it may hold.
    began = threading.Event()

    def work():
        if lock is not None:
            lock.acquire()
        began.set()
        while True:
            sum(range(1000))

    return work, began


def busy(worker, lock=None):
    if ACCELERATED:
        work, began = forever(lock)
        worker.post(work)
        assert began.wait(20)
"""

PROGRAMS = {
    "a stream left open": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
""",
    "a stream left open in a cycle": """
program = trained(three(world, model))
parts = [program.stream({"q": "beaches"})]
parts.append(parts)
print(next(parts[0]))
gc.disable()
del parts
""",
    "a stream left open with early calls under way": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
world.gates["Beta asks: beaches"] = threading.Event()
if ACCELERATED:
    world.hooks["a"] = lambda: world.wait_early("Beta asks", over=False)
print(next(parts))
""",
    "a stream left open while the issuer holds the plan": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
busy(issuer, ACCELERATED and program.plan._lock)
""",
    "a stream left open while the learner holds the plan": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
busy(learner, ACCELERATED and program.plan._lock)
""",
    "a stream left open while the issuer holds the run": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
busy(issuer, ACCELERATED and [run for run in OPEN][0].lock)
""",
    "a stream of a model left open": """
from langchain_core.prompts import ChatPromptTemplate
program = same(ChatPromptTemplate.from_template("tell of {q}") | StreamingChat(world))
world.answer = lambda text: f"{text}~ and ~more"
parts = program.stream({"q": "beaches"})
print(next(parts).content)
""",
    "a stream of a chain left open while the learner works": """
from langchain_core.prompts import ChatPromptTemplate
program = same(ChatPromptTemplate.from_template("tell of {q}") | StreamingChat(world))
world.answer = lambda text: f"{text}~ and ~more"
parts = program.stream({"q": "beaches"})
print(next(parts).content)
busy(learner, ACCELERATED and program.plan._lock)
""",
    "an asynchronous stream left open": """
program = trained(three(world, model))
parts = program.astream({"q": "beaches"})
async def main():
    print(await anext(parts))
asyncio.run(main())
""",
    "an asynchronous stream left open on a loop that is not closed": """
program = trained(three(world, model))
loop = asyncio.new_event_loop()
parts = program.astream({"q": "beaches"})
async def main():
    print(await anext(parts))
loop.run_until_complete(main())
""",
    "an asynchronous stream left open on a loop that is closed": """
program = trained(three(world, model))
loop = asyncio.new_event_loop()
parts = program.astream({"q": "beaches"})
async def main():
    print(await anext(parts))
loop.run_until_complete(main())
loop.close()
""",
    "a stalled early call": """
def a(state):
    said = model.invoke(f"Alpha asks: {state['q']}").content
    if ACCELERATED and state["q"] == "beaches":
        world.wait_early("Beta asks: beaches", over=False)
    return {"a": said}

def b(state):
    return {"b": None if state["q"] == "beaches" else model.invoke(f"Beta asks: {state['q']}").content}

program = trained(chain(("a", a), ("b", b)))
world.gates["Beta asks: beaches"] = threading.Event()
print(program.invoke({"q": "beaches"}))
""",
    "stalled early coroutines on a loop that is not closed": """
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
import adapters.tests.core_fakes as fakes
started = None

class Slow(Chat):
    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        text = fakes.as_text(messages)
        if text == "Beta asks: beaches":
            started.set()
            await asyncio.Event().wait()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"re {text}"))])

accel.register(Slow, pure=True, local=True, concurrency=8)
slow = Slow(world)
async def a(state):
    said = (await slow.ainvoke(f"Alpha asks: {state['q']}")).content
    if ACCELERATED and state["q"] == "beaches":
        await asyncio.wait_for(started.wait(), 20)
    return {"a": said}
async def b(state):
    return {"b": None if state["q"] == "beaches" else (await slow.ainvoke(f"Beta asks: {state['q']}")).content}

program = same(chain(("a", a), ("b", b)))
loop = asyncio.new_event_loop()
async def main(topic):
    global started
    started = asyncio.Event()
    return await program.ainvoke({"q": topic})
for topic in (*TOPICS, "islands of Greece"):
    loop.run_until_complete(main(topic))
    accel.settle()
print(loop.run_until_complete(main("beaches")))
""",
    "a learner in the middle of a lesson": """
program = same(three(world, model))
program.invoke({"q": "beaches"})
world.node = lambda name: None
busy(learner)
print(program.invoke({"q": "rivers"})["c"])
""",
    "an exit inside a node": """
program = trained(three(world, model))
world.hooks["b"] = lambda: sys.exit(3)
program.invoke({"q": "beaches"})
""",
    "an error": """
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
del sys.excepthook
raise SystemExit("the end")
""",
    "runs on daemon threads": """
program = trained(three(world, model))
world.node = lambda name: None
def on_and_on():
    turn = 0
    while True:
        turn += 1
        program.invoke({"q": f"topic {turn}"})
for _ in range(3):
    threading.Thread(target=on_and_on, daemon=True).start()
world.wait(lambda: len(world.calls) > 60)
""",
    "a handler that runs the graph": """
program = trained(three(world, model))
world.node = lambda name: None
parts = program.stream({"q": "beaches"})
print(next(parts))
atexit.register(lambda: print("handler:", program.invoke({"q": "the end"})["b"]))
""",
    "a handler from before Accel": """
program = trained(three(world, model))
world.node = lambda name: None
parts = program.stream({"q": "beaches"})
print(next(parts))
busy(learner, ACCELERATED and program.plan._lock)
""",
    "an object that is finalised at the end": """
last = Last(print)
program = trained(three(world, model))
parts = program.stream({"q": "beaches"})
print(next(parts))
""",
    "an object that Accel is at when the end comes": """
last = Last(print)
program = trained(three(world, model))
if ACCELERATED:
    began = [threading.Event() for _ in range(3)]
    def work(event, held):
        event.set()
        sum(range(500_000))
    def lesson(event, held):
        event.set()
        while True:
            breathe()
    issuer.post(lambda event=began[0], last=last: work(event, last))
    issuer.post(lambda last=last: work(began[0], last))
    learner.post(lambda event=began[1], last=last: lesson(event, last))
    learner.post(lambda last=last: lesson(began[1], last))
    spawn(lambda event=began[2], last=last: work(event, last))
    assert all(event.wait(20) for event in began)
""",
    "a generator of the program's left open": """
from langchain_core.prompts import ChatPromptTemplate
def words(parts, print=print):
    try:
        for part in parts:
            yield part.content
    finally:
        print("closed", flush=True)
program = same(ChatPromptTemplate.from_template("tell of {q}") | StreamingChat(world) | words)
world.answer = lambda text: f"{text}~ and ~more"
parts = program.stream({"q": "beaches"})
print(next(parts))
""",
    "an answer of LlamaIndex left open": """
from adapters.tests.llamaindex_programs import QUESTIONS, Program
made = Program("compact", streaming=True)
program = same(made.engine)
for question in QUESTIONS[:2]:
    print(str(program.query(question)))
response = program.query(QUESTIONS[2])
print(next(response.response_gen))
busy(learner, ACCELERATED and program.plan._lock)
""",
    "an answer of LlamaIndex left unread": """
from adapters.tests.llamaindex_programs import QUESTIONS, Program
made = Program("compact", streaming=True)
program = same(made.engine)
response = program.query(QUESTIONS[2])
busy(issuer, ACCELERATED and [run for run in OPEN][0].lock)
""",
    "an asynchronous answer of LlamaIndex left open": """
from adapters.tests.llamaindex_programs import QUESTIONS, Program
made = Program("compact", streaming=True)
program = same(made.engine)
async def main():
    global response
    response = await program.aquery(QUESTIONS[2])
    print(await anext(response.response_gen))
asyncio.run(main())
""",
    "an asynchronous stream of a model left open": """
from langchain_core.prompts import ChatPromptTemplate
class Asynchronous(StreamingChat):
    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for word in self._words(messages):
            yield word
program = same(ChatPromptTemplate.from_template("tell of {q}") | Asynchronous(world))
world.answer = lambda text: f"{text}~ and ~more"
parts = program.astream({"q": "beaches"})
async def main():
    print((await anext(parts)).content)
asyncio.run(main())
""",
}


# The interpreter's own end of a daemon thread that is inside of C++ code, now and then, with Accel or without.
CRASH_OF_A_DAEMON_THREAD = (-6, "", ["FATAL: exception not rethrown"])
ENOUGH_ENDS = 5


def ends(program: str, arm: str) -> tuple[int, str, list[str]]:
    """How the program ends; if the interpreter crashed over its daemon threads, how it ends another time."""
    for _ in range(ENOUGH_ENDS):
        end = _ends_once(program, arm)
        if end != CRASH_OF_A_DAEMON_THREAD:
            break
    return end


def _ends_once(program: str, arm: str) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + PROGRAMS[program], arm, program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_ends_as_without_accel(program: str) -> None:
    plain = ends(program, "plain")
    assert ends(program, "accelerated") == plain
