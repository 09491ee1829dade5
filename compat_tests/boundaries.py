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


ALL_BLOCKS: dict[Callable[[Writer], Lines], int] = {
    **BLOCKS,
    raises: 1,
    guard: 3,
    sanitize: 4,
    tenant: 1,
    hidden_input: 1,
}
TENANTS_BLOCKS = {**ALL_BLOCKS, private: 6}
