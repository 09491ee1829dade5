"""Blocks of random nodes that stand where data must not pass just so: guards, sanitizers, tenants, users."""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.blocks import BLOCKS, Lines, Writer, ask, caught, indent


def raises(w: Writer) -> Lines:
    """A failure nobody catches, or one that a retry policy mends."""
    if w.rng.random() < 0.7:
        return [*ask(w), "stumble_once(key)"]
    if not w.solo:
        return caught(w)
    name = w.fresh("risky")
    asked = w.ask(w.model(), w.prompt(w.text(), fragile=True))
    w.texts.append(name)
    return [f"{name} = {asked}.content"]


REFUSALS = {
    "raises": 'raise ValueError(f"blocked {question}")',
    "interrupts": 'interrupt("may it go on?")',
    "returns": 'return {"notes": ["refused"]}',
}


def guard(w: Writer) -> Lines:
    """Something that may stop the node before a remote call."""
    if not w.solo:
        return caught(w)
    endpoint = w.rng.choice(["remote", "remote", "abroad"])
    w.uses.add(endpoint)
    how = w.rng.choice(["interrupts", "interrupts", *REFUSALS] if w.setting.pauses else ["raises", "raises", "returns"])
    refused, lines = '"STOP" in question', []
    if w.rng.random() < 0.3:
        verdict = w.fresh("verdict")
        lines = [f"{verdict} = {w.ask('local', w.prompt('question', want='yes or no'))}.content"]
        refused = f'"no" in {verdict} and {refused}' if w.rng.random() < 0.5 else f'"no" in {verdict}'
    name = w.fresh("guarded")
    w.texts.append(name)
    asked = w.ask(endpoint, w.prompt(w.rng.choice(["question", w.texts[0]])))
    return [*lines, f"if {refused}:", *indent([REFUSALS[how]]), f"{name} = {asked}.content"]


def approve(w: Writer) -> Lines:
    """Somebody is asked, in many requests or in all, and a model is told of the answer."""
    if not w.solo:
        return caught(w)
    name = w.fresh("answer")
    asked = f"{name} = interrupt({w.text()})"
    if w.rng.random() < 0.4:
        asked = f'{asked} if "q" in question[:12] else "granted"'
    told = w.fresh("told")
    w.texts += [name, told]
    return [asked, f"{told} = {w.ask(w.model(), w.prompt(name))}.content"]


def sanitize(w: Writer) -> Lines:
    """Code that takes something out of a text before a remote endpoint gets it."""
    endpoint = w.rng.choice(["remote", "abroad"])
    w.uses.add(endpoint)
    name = w.fresh("clean")
    said = f"said_{name}"
    style = w.rng.randrange(5)
    if style == 0:  # changes nothing in most requests
        lines = [f"{name} = re.sub(r'\\S+@\\S+', '[redacted]', question)"]
    elif style == 1:
        lines = [f"{name} = scrub({w.text()})"]
    elif style == 2:
        lines = [f"draft = {w.ask('local', w.prompt(w.text()))}.content", f"{name} = scrub(draft)"]
    elif style == 3:
        asked = w.ask(endpoint, w.prompt("item"))
        w.lists.append(said)
        return [f"{said} = [{asked}.content for item in map(scrub, {w.list()})]"]
    else:  # pseudonyms, and back again
        taken_out = f"{name}, names = pseudonyms({w.text()})"
        put_back = f"{said} = named({w.ask(endpoint, w.prompt(name))}.content, names)"
        w.texts.append(said)
        return [taken_out, put_back, *ask(w)]
    asked = w.ask(endpoint, w.prompt(name))
    w.texts.append(said)
    return [*lines, f"{said} = {asked}.content"]


def tenant(w: Writer) -> Lines:
    """The model's answer depends on a tenant that is set just before the call."""
    name = w.fresh("private")
    chosen = w.rng.choice(['"b"', 'config["configurable"]["user"]', '"a" if len(text) % 2 else "b"', "OWNER.get()"])
    asked = w.ask("tenant", w.prompt(w.text()))
    w.texts.append(name)
    return [f"TENANT.set({chosen})", f"{name} = {asked}.content"]


def private(w: Writer) -> Lines:
    """A tenant's own documents, and their own model."""
    if w.setting.tenancy == "one":
        return tenant(w)
    name, query, vault = w.fresh("mine"), w.text(), w.own("vault")
    search = f"await {vault}.asimilarity_search" if w.is_async else f"{vault}.similarity_search"
    lines = [f"{name} = [doc.page_content for doc in seen(key, {search}({query}, k=2))]"]
    w.lists.append(name)
    if w.rng.random() < 0.6:
        answer = f"about_{name}"
        prompt = f'f"Answer {{{w.text()}}} from " + "; ".join({name})'
        lines.append(f"{answer} = {w.ask(w.own(), prompt)}.content")
        w.texts.append(answer)
    return lines


def hidden_input(w: Writer) -> Lines:
    """A prompt with something that is in no state: the config, or a counter."""
    name = w.fresh("hidden")
    if w.solo and w.rng.random() < 0.5:
        w.uses.add("counter")
        value = "next(counter)"
    else:
        value = 'config["configurable"]["user"]'
    asked = w.ask(w.model(), "f" + repr("Greet {who} on {" + w.text() + "}"))
    w.texts.append(name)
    return [f"who = {value}", f"{name} = {asked}.content"]


def caller(w: Writer) -> Lines:
    """A prompt with what an object beside the input says of the request."""
    if w.setting.callers == "none":
        return hidden_input(w)
    name = w.fresh("told")
    ways = ["CALLER.get()"] if w.setting.callers == "variable" else ["runtime.context", "get_runtime(Caller).context"]
    asked = w.ask(w.model(), "f" + repr("Greet {who} on {" + w.text() + "}"))
    w.uses.add("caller")
    w.texts.append(name)
    which = w.rng.choice(["tenant", "request_id"])
    return [f"who = {w.rng.choice(ways)}.{which}", f"{name} = {asked}.content"]


def session(w: Writer) -> Lines:
    """The model's answer depends on what this thread has set, or it has a handle that belongs to this thread."""
    if not w.solo:
        return ask(w)
    name = w.fresh("here")
    if w.rng.random() < 0.5:
        lines, model = [f"SESSION.user = {w.text()}[:6]"], "session"
    else:
        lines, model = ["bound = bound_chat()"], "bound"
    asked = w.ask(model, w.prompt(w.text()))
    w.texts.append(name)
    return [*lines, f"{name} = {asked}.content"]


def rekeyed(w: Writer) -> Lines:
    """The program gives its model another key: its user's."""
    if not w.solo:
        return ask(w)
    model = w.rng.choice(["remote", "remote", "abroad"])
    w.uses |= {"keys", model}
    name = w.fresh("keyed")
    w.texts.append(name)
    asked = w.ask(model, w.prompt(w.text()))
    return [f'{model}.api_key = "sk-" + config["configurable"]["user"]', f"{name} = {asked}.content"]


def impatient(w: Writer) -> Lines:
    """A call that may be given up at any moment, and whose answer is not used."""
    if not w.is_async:
        return ask(w)
    patience_s = w.rng.choice([0.0003, 0.0006, 0.001, 0.003])
    given_up, once = w.fresh("given_up"), w.fresh("once")
    times = f"*({once}() for _ in range({w.rng.choice([1, 1, 2, 3])}))"
    return [
        f"async def {once}():",  # a coroutine that is cancelled before it begins leaves none behind
        f"    await asyncio.wait_for(hasty.ainvoke({w.prompt(w.text())}), {patience_s})",
        f"{given_up} = await asyncio.gather({times}, return_exceptions=True)",
        f"for error in {given_up}:",
        "    if error is not None and not isinstance(error, TimeoutError):",
        "        raise error",
    ]


ALL_BLOCKS: dict[Callable[[Writer], Lines], int] = {
    **BLOCKS,
    raises: 1,
    guard: 3,
    sanitize: 4,
    tenant: 1,
    hidden_input: 1,
    caller: 2,
    session: 1,
    rekeyed: 1,
    impatient: 1,
}
TENANTS_BLOCKS = {**ALL_BLOCKS, private: 6}
PAUSES_BLOCKS = {approve: 24}
"""Of programs that people answer, too."""
