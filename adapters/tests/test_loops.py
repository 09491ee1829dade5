"""Loops whose rounds are known by the one before: as many rounds as a run makes are early, and as the program has
them."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

import accel
from accel import accelerate
from accel.tests.random_programs import words
from adapters.tests.core_fakes import Chat, ReadonlyStore, World

MOST = 9
"""Rounds of a loop that nothing else ends."""


class Draft(TypedDict, total=False):
    q: str
    rounds: int
    chunks: list[str]
    draft: str
    why: str
    tone: str
    done: int


class Library(ReadonlyStore):
    """Finds something else for each question."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        self.rows = {"row": words(("found", query), 6)}
        return super().similarity_search(query, k, **kwargs)


def in_one_node(body: Callable[[Draft], Any]) -> Any:
    builder = StateGraph(Draft)
    builder.add_node("work", body)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile()


def counted(world: World) -> Any:
    """So many rounds as the run is told; what a round asks goes by the draft before it."""
    model, store = Chat(world), Library(world)

    def work(state: Draft) -> Draft:
        draft = model.invoke(f"Write on {state['q']}.").content
        for _ in range(state["rounds"]):
            check = model.invoke(f"Check {draft}").content
            tone = model.invoke(f"Tone of {draft}").content
            fact = store.similarity_search(f"facts on {draft}")[0].page_content
            draft = model.invoke(f"Improve {draft}\nby {check}\nand {tone}\nand {fact}").content
        return {"draft": str(draft)}

    return in_one_node(work)


def counted_async(world: World) -> Any:
    model = Chat(world)

    async def work(state: Draft) -> Draft:
        draft = (await model.ainvoke(f"Write on {state['q']}.")).content
        for _ in range(state["rounds"]):
            check = (await model.ainvoke(f"Check {draft}")).content
            tone = (await model.ainvoke(f"Tone of {draft}")).content
            draft = (await model.ainvoke(f"Improve {draft}\nby {check}\nand {tone}")).content
        return {"draft": str(draft)}

    return in_one_node(work)


def accepted(world: World) -> Any:
    """It ends when a judge is content, which goes by the number in what it reads, or after `MOST` rounds."""
    model = Chat(world)

    def work(state: Draft) -> Draft:
        draft = model.invoke(f"Write on {state['q']}.").content
        world.node("written")
        for _ in range(MOST):
            check = model.invoke(f"Check {draft}").content
            tone = model.invoke(f"Tone of {draft}").content
            said = json.loads(str(model.invoke(f"Judge {draft}").content))
            if said["ok"]:
                return {"draft": str(draft)}
            draft = model.invoke(f"Improve {draft}\nby {said['why']}\nand {tone}\nand {check}").content
        return {"draft": str(draft)}

    return in_one_node(work)


def reworded(world: World) -> Any:
    """The question itself is what changes from round to round."""
    model, store = Chat(world), Library(world)

    def work(state: Draft) -> Draft:
        question = state["q"]
        for _ in range(state["rounds"]):
            found = store.similarity_search(question)[0].page_content
            check = model.invoke(f"Check {question} against {found}").content
            tone = model.invoke(f"Tone of {question}").content
            question = str(model.invoke(f"Reword {question} by {check} and {tone}").content)
        return {"draft": question}

    return in_one_node(work)


def cycle(world: World) -> Any:
    """A cycle of the graph: of its nodes, only the first knows the draft from where it is written."""
    model = Chat(world)

    def write(state: Draft) -> Draft:
        if not state.get("why"):
            return {"draft": str(model.invoke(f"Write on {state['q']}.").content), "done": 0}
        prompt = f"Improve {state['draft']}\nby {state['why']}\nand {state['tone']}"
        return {"draft": str(model.invoke(prompt).content), "done": state["done"] + 1}

    def check(state: Draft) -> Draft:
        return {"why": str(model.invoke(f"Check {state['draft']}").content)}

    def tone(state: Draft) -> Draft:
        return {"tone": str(model.invoke(f"Tone of {state['draft']}").content)}

    builder = StateGraph(Draft)
    for node in (write, check, tone):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "write")
    builder.add_edge("write", "check")
    builder.add_edge("check", "tone")
    builder.add_conditional_edges("tone", lambda s: "write" if s["done"] < s["rounds"] else END, ["write", END])
    return builder.compile()


LOOPS = (counted, accepted, reworded, cycle)


def answer(text: str) -> str:
    """The judge is content with the draft that was improved as often as the first one says."""
    said = words(text, 8)
    left = int(text.rpartition("(")[2].partition(")")[0]) if "(" in text else -1
    if text.startswith("Judge"):
        return json.dumps({"ok": left == 0, "why": said})
    return said if left < 0 or text.startswith(("Check", "Tone")) else f"{said} ({left - text.startswith('Improve')})"


def given(number: int, rounds: int) -> Draft:
    return {"q": f"{words(('q', number), 4)} ({rounds})", "rounds": rounds}


def trained(loop: Callable[[World], Any], learnt: Sequence[int], world: World, **options: Any) -> Any:
    fast = accelerate(loop(world), **options)
    for number, rounds in enumerate(learnt):
        fast.invoke(given(number, rounds))
        assert accel.settle()
    world.forget()
    return fast


def unmodified(loop: Callable[[World], Any], value: Draft) -> tuple[Any, list[str]]:
    world = World(answer=answer)
    return loop(world).invoke(value, {"recursion_limit": 60}), world.texts()


def in_each_round(world: World, but_first: bool = False) -> None:
    """From now on no check is answered before the call after it, of the same round, has been made early. `but_first`: a
    plan that was saved knows no component before the program has used it."""

    def beside(text: str) -> str:
        if text.startswith("Check") and (world.texts("Tone") or not but_first):
            draft = text.removeprefix("Check ").partition(" against ")[0]
            world.wait_early(f"Tone of {draft}", over=False)
        return answer(text)

    world.answer = beside


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("learnt", [(3, 3), (2, 3, 4)])
def test_more_rounds_than_were_learnt_are_early_each_as_soon_as_it_has_begun(
    loop: Callable[[World], Any], learnt: tuple[int, ...]
) -> None:
    world, value = World(answer=answer), given(9, 7)
    fast = trained(loop, learnt, world)
    in_each_round(world)
    result, asked = unmodified(loop, value)
    assert fast.invoke(value, {"recursion_limit": 60}) == result
    assert sorted(world.texts()) == sorted(asked)
    assert len(world.texts("Tone", early=True)) == len([text for text in asked if text.startswith("Tone")]) >= 7


def test_a_first_round_that_was_foreseen_in_other_words_is_no_round_more() -> None:
    """Else each round after it would be taken for the one after that, and be asked with what another one found."""
    world, polite = World(answer=answer), [""]

    def politely(world: World) -> Any:
        model, store = Chat(world), Library(world)

        def work(state: Draft) -> Draft:
            question, please = state["q"], polite[0]
            for _ in range(state["rounds"]):
                world.node("round")
                found = store.similarity_search(please + question)[0].page_content
                check = model.invoke(f"Check {question} against {found}").content
                tone = model.invoke(f"Tone of {question}").content
                question = str(model.invoke(f"Reword {question} by {check} and {tone}").content)
                please = ""
            return {"draft": question}

        return in_one_node(work)

    fast = trained(politely, (2, 3, 4), world)
    polite[0] = "please, on "
    result, asked = unmodified(politely, given(9, 7))
    assert fast.invoke(given(9, 7)) == result
    assert sorted(world.texts()) == sorted(asked)


@pytest.mark.parametrize("loop", [counted, reworded, cycle])
def test_so_many_rounds_as_the_input_says_are_early_and_no_more(loop: Callable[[World], Any]) -> None:
    world = World(answer=answer)
    fast = trained(loop, (2, 3, 4), world)
    for number, rounds in ((5, 1), (6, 7)):
        in_each_round(world)
        result, asked = unmodified(loop, given(number, rounds))
        assert fast.invoke(given(number, rounds), {"recursion_limit": 60}) == result
        assert sorted(world.texts()) == sorted(asked)
        world.forget()
    assert fast.report().wasted == 0


def test_a_value_that_ends_a_loop_is_followed_whatever_number_of_rounds_that_is() -> None:
    world = World(answer=answer)
    fast = trained(accepted, (2, 3), world)
    for number, rounds in ((5, 6), (6, 0), (7, 1)):
        result, asked = unmodified(accepted, given(number, rounds))
        assert fast.invoke(given(number, rounds)) == result
        assert sorted(world.texts()) == sorted(asked)
        world.forget()
    assert fast.report().wasted == 0


def test_a_loop_that_may_go_on_longer_than_ever_is_followed_a_round_ahead_of_the_program() -> None:
    """The judge is never content: that the program itself ends its loop, no run has shown."""
    world, value, known = World(answer=answer), given(9, 50), 4
    fast = trained(accepted, (2, 3), world)
    result, asked = unmodified(accepted, value)

    def look() -> None:
        world.wait(lambda: len(world.texts("Judge")) == known)
        assert accel.settle()
        assert len(world.texts("Judge")) == known

    world.hooks["written"] = look
    assert fast.invoke(value) == result
    assert len(world.texts("Judge")) <= len([text for text in asked if text.startswith("Judge")]) + 1


async def test_rounds_of_coroutines() -> None:
    world, value = World(answer=answer), given(9, 5)
    fast = accelerate(counted_async(world))
    for number in range(2):
        await fast.ainvoke(given(number, 3))
        assert accel.settle()
    world.forget()
    plain = World(answer=answer)
    result = await counted_async(plain).ainvoke(value)
    in_each_round(world)
    assert await fast.ainvoke(value) == result
    assert sorted(world.texts()) == sorted(plain.texts())


def test_a_saved_plan_knows_a_loop(tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    trained(accepted, (2, 3), World(answer=answer)).save_plan(path)
    world, value = World(answer=answer), given(9, 5)
    fast = accelerate(accepted(world), plan=path)
    in_each_round(world, but_first=True)
    result, asked = unmodified(accepted, value)
    assert fast.invoke(value) == result
    assert sorted(world.texts()) == sorted(asked)


def test_a_plan_is_as_large_whatever_the_rounds(tmp_path: Path) -> None:
    sizes = set()
    for rounds in (2, 6):
        path = tmp_path / f"{rounds}.json"
        trained(counted, (rounds, rounds), World(answer=answer)).save_plan(str(path))
        sizes.add(len(json.loads(path.read_text())["nodes"]))
    assert len(sizes) == 1


def test_a_round_that_raises_ends_the_run_as_it_would() -> None:
    world, value = World(answer=answer), given(9, 5)
    fast = trained(counted, (3, 3), world)
    world.errors["Improve"] = RuntimeError("no more paper")
    with pytest.raises(RuntimeError, match="no more paper"):
        fast.invoke(value)
    assert len(world.texts("Improve")) == 1


def debated(world: World) -> Any:
    """As many rounds as the run is told; then each side is judged by all that it said."""
    model = Chat(world)

    class Debate(TypedDict, total=False):
        q: str
        rounds: int
        said: Annotated[list[str], operator.add]
        title: str
        verdict: str

    def speaks(side: str) -> Any:
        def node(state: Debate) -> Any:
            so_far, q = "\n".join(state.get("said", [])), state["q"]
            return {"said": [f"{side}: {model.invoke(f'Speak {side} {q} after {so_far}').content}"]}

        return node

    def judge(state: Debate) -> Any:
        verdicts = []
        for side in ("for", "against"):
            for what in ("logic", "style"):
                own = "\n".join(text for text in state["said"] if text.startswith(side))
                verdicts.append(str(model.invoke(f"Judge the {what} of {own}").content))
        return {"verdict": " ".join(verdicts)}

    def entitle(state: Debate) -> Any:
        return {"title": str(model.invoke(f"A title for {state['said'][-1]}").content)}

    builder = StateGraph(Debate)
    for name, node in (("pro", speaks("for")), ("con", speaks("against")), ("judge", judge), ("entitle", entitle)):
        builder.add_node(name, node)
    builder.add_edge(START, "pro")
    builder.add_edge("pro", "con")
    builder.add_conditional_edges(
        "con", lambda state: "judge" if len(state["said"]) >= 2 * state["rounds"] else "pro", ["pro", "judge"]
    )
    builder.add_edge("judge", "entitle")
    builder.add_edge("entitle", END)
    return builder.compile()


def test_what_follows_a_loop_of_any_length_is_early_once_the_run_is_past_it() -> None:
    """Nothing else says that no more rounds come."""
    world = World(answer=lambda text: words(text, 8))
    graph, fast = debated(World(answer=world.answer)), accelerate(debated(world))
    for number, rounds in enumerate((2, 3, 2, 3)):
        fast.invoke(given(number, rounds))
        assert accel.settle()
    world.forget()

    def beside(text: str) -> str:
        if text.startswith("Judge the logic of for"):
            world.wait_early("Judge the style of for", over=False)
            world.wait_early("Judge the style of against", over=False)
            world.wait_early("A title for", over=False)
        return words(text, 8)

    world.answer = beside
    for number, rounds in ((5, 2), (6, 3)):
        assert fast.invoke(given(number, rounds)) == graph.invoke(given(number, rounds))
        world.forget()
    assert fast.report().wasted == 0
