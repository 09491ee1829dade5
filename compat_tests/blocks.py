"""What random nodes are made of: each function writes one self-contained block of source lines.

A block reads variables that earlier blocks made and makes new ones. `seen(key, value)` in the program's source logs
what a call gave the program; `effect(key, value)` is a side effect.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compat_tests.surroundings import Setting

Lines = list[str]

WANTED = {
    "text": ["Write a note on", "Explain briefly", "Summarise", "Answer the question"],
    "numbered": ["Give a numbered list of queries for"],
    "bullets": ["List bullets about"],
    "commas": ["Name topics, separated by commas, of"],
    "json": ["Answer in JSON about"],
    "lines": ["Write three lines on"],
    "yes or no": ["Say yes or no: is this relevant:"],
}
SPLITTERS = {"numbered": "numbered", "bullets": "bullets", "commas": "commas", "json": "json_items", "lines": "lines"}


@dataclass
class Writer:
    """Writes the blocks of one node; knows which variables exist and what the node may do."""

    rng: random.Random
    is_async: bool
    solo: bool  # nothing of the same run is active beside this node
    sampling: bool
    setting: Setting = Setting()
    gated: bool = False  # a declared guard comes before
    menu: Mapping[Callable[[Writer], Lines], int] = field(default_factory=lambda: BLOCKS)
    texts: list[str] = field(default_factory=lambda: ["question", "text"])
    lists: list[str] = field(default_factory=lambda: ["items"])
    count: int = 0
    depth: int = 0
    uses: set[str] = field(default_factory=set)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def text(self) -> str:
        return self.rng.choice(self.texts[-4:])

    def list(self) -> str:
        return self.rng.choice(self.lists[-3:])

    def model(self, *, concurrent: bool = False) -> str:
        names, weights = ["local", "remote", "abroad", "follower", "tenant"], [10, 4, 1, 2, 2]
        if self.gated:
            names, weights = [*names, "gated"], [*weights, 12]
        if self.setting.tenancy != "one" and not concurrent:
            names, weights = [*names, self.own()], [*weights, 5]
        if self.sampling and not concurrent:
            names, weights = [*names, "sampled"], [*weights, 6]
        if self.solo and not concurrent:
            names, weights = [*names, "scripted"], [*weights, 1]
        name = self.rng.choices(names, weights)[0]
        self.uses.add(name)
        return name

    def own(self, component: str = "own") -> str:
        """An expression for a component of the tenant whose request it is."""
        if self.setting.scoped:
            return component
        whose = self.rng.choice(["OWNER.get()", 'config["configurable"]["tenant"]'])
        if component == "vault":
            return f"vaults[{whose}]"
        return self.rng.choice([f"models[{whose}]", f"models[{whose}]", f"model_of({whose})"])

    def prompt(self, *variables: str, want: str = "text", fragile: bool = False) -> str:
        """A Python expression for a prompt that pastes the variables, the way people write them."""
        rng = self.rng
        lead = rng.choice(WANTED[want]) + (" (fragile)" if fragile else "")
        if rng.random() < 0.15:
            lead = f"You are careful. Use only what you are given, and cite it. {lead}"
        first = variables[0]
        cut = rng.choice([first, first, first, f"{first}[:30]", f"{first}.strip()", f"{first}.upper()"])
        if rng.random() < 0.1:
            cut = rng.choice(
                [f"{first}.split('. ')[0]", f"{first}.partition(chr(10))[0]", f"{first}.partition(' the ')[0]"]
            )
        rest = "".join(f" and {{{name}}}" for name in variables[1:])
        forms = [
            f'f"{lead} {{{cut}}}{rest}."',
            f'f"{lead}\\n\\n{{{cut}}}\\n---{rest}"',
            f'[SystemMessage("Be terse."), HumanMessage(f"{lead}: {{{cut}}}{rest}")]',
            f'[("system", "Be terse."), ("human", f"{lead}: {{{cut}}}{rest}")]',
            f'"{lead}: {{}}".format(", ".join([{", ".join(variables)}]))',
            f'"{lead} " + {cut}' + "".join(f' + "; " + {name}' for name in variables[1:]),
        ]
        if rng.random() < 0.2:
            several = self.list()
            forms = [
                f'"{lead} " + {first} + ":\\n" + "\\n".join({several})',
                f'f"{lead} {{{first}}}: " + "\\n".join(f"- {{x}}" for x in {several})',
                f'f"{lead} {{{first}}} in {{len({several})}} parts"',
                f'f"{lead} {{{several}}}"',
                f'"{lead} " + json.dumps({several})',
                f'f"{lead} {{json.dumps(dict(topic={first}, parts={several}), indent=2)}}"',
            ]
        return rng.choice(forms)

    def ask(self, model: str, prompt: str, key: str = "key", options: str = "") -> str:
        """An expression for the message that the model gives."""
        if self.is_async and self.rng.random() < 0.95:
            return f"seen({key}, await {model}.ainvoke({prompt}{options}))"
        return f"seen({key}, {model}.invoke({prompt}{options}))"

    def block(self) -> Lines:
        return self.rng.choices(list(self.menu), list(self.menu.values()))[0](self)

    def nested(self) -> Lines:
        """A block inside another statement: what it defines isn't used after it."""
        texts, lists = list(self.texts), list(self.lists)
        self.depth += 1
        lines = self.block() if self.depth < 3 else effect(self)
        self.depth -= 1
        self.texts, self.lists = texts, lists
        return lines


def indent(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines]


def ask(w: Writer) -> Lines:
    options = w.rng.choice(["", "", "", "", ', stop=["x"]', f", length=len({w.text()}) % 3", ", length=7"])
    prompt = w.prompt(*w.rng.sample(w.texts, k=min(len(w.texts), w.rng.choice([1, 1, 2]))))
    name = w.fresh("answer")
    line = f"{name} = {w.ask(w.model(), prompt, options=options)}.content"
    w.texts.append(name)
    return [line]


def ask_list(w: Writer) -> Lines:
    want = w.rng.choice(list(SPLITTERS))
    asked = w.ask(w.model(), w.prompt(w.text(), want=want))
    name = w.fresh("found")
    lines = [f"{name} = {SPLITTERS[want]}({asked}.content)"]
    if want == "lines" and w.rng.random() < 0.5:
        lines = [f"raw_{name} = {asked}.content", f"{name} = [x.strip() for x in raw_{name}.split('\\n') if x.strip()]"]
    if w.rng.random() < 0.3:
        lines.append(
            w.rng.choice(
                [
                    f"{name} = {name}[:2]",
                    f"{name} = list(dict.fromkeys({name}))",
                    f"{name} = sorted({name})",
                    f"{name} = [x for x in {name} if len(x) > 9]",
                    f"{name}.reverse()",
                ]
            )
        )
    w.lists.append(name)
    return lines


def loop(w: Writer) -> Lines:
    over, name, model = w.list(), w.fresh("notes"), w.model()
    each = w.rng.choice([over, over, f"{over}[:2]", f"list(dict.fromkeys({over}))", f"reversed({over})"])
    w.texts.append("item")
    asked = w.ask(model, w.prompt("item", *w.rng.sample(["question", "text"], k=w.rng.choice([0, 1]))))
    style = w.rng.randrange(5)
    if style == 0:
        lines = [f"{name} = [{asked}.content for item in {each}]"]
    elif style == 1:
        lines = [
            f"{name} = []",
            f"for position, item in enumerate({each}):",
            f"    {name}.append({asked}.content)",
            f"    effect(key, (position, {name}[-1]))",
        ]
    elif style == 2:
        judge = w.ask("local", w.prompt("item", want="yes or no"))
        stop = w.rng.choice(["break", "continue"])
        lines = [
            f"{name} = []",
            f"for item in {each}:",
            f'    if "no" in {judge}.content:',
            f"        {stop}",
            f"    {name}.append({asked}.content)",
        ]
    elif style == 3:
        refine = w.ask(model, 'f"Improve {sofar} with {item}."')
        lines = ['sofar = "nothing"', f"for item in {each}:", f"    sofar = {refine}.content", f"{name} = [sofar]"]
    else:
        body = indent(w.nested())
        lines = [f"{name} = []", f"for item in list({over})[:3]:", *body, f"    {name}.append({asked}.content)"]
    w.texts.remove("item")
    w.lists.append(name)
    return lines


def parallel(w: Writer) -> Lines:
    over, name, model = w.list(), w.fresh("all"), w.model(concurrent=True)
    prompt = w.prompt("item")
    w.uses.add("concurrent")
    w.lists.append(name)
    if w.is_async:
        helper = w.fresh("helper")
        return [
            f"async def {helper}(position, item):",
            f'    return seen(f"{{key}}/{{position}}", await {model}.ainvoke({prompt})).content',
            f"{name} = await asyncio.gather(*({helper}(i, x) for i, x in enumerate({over})))",
            f"{name} = list({name})",
        ]
    helper = w.fresh("helper")
    run = w.rng.choice(["copy_context().run, ", ""])
    return [
        f"def {helper}(position, item):",
        f'    return seen(f"{{key}}/{{position}}", {model}.invoke({prompt})).content',
        "with ThreadPoolExecutor(3) as pool:",
        f"    futures = [pool.submit({run}{helper}, i, x) for i, x in enumerate({over})]",
        f"{name} = [future.result() for future in futures]",
    ]


def batch(w: Writer) -> Lines:
    over, name, model = w.list(), w.fresh("batch"), w.rng.choice(["local", "remote"])
    w.uses.add("concurrent")
    prompts = f'[f"Describe {{item}} for {{{w.text()}}}" for item in {over}]'
    call = f"await {model}.abatch({prompts})" if w.is_async else f"{model}.batch({prompts})"
    w.lists.append(name)
    return [f"{name} = [seen(key, message).content for message in {call}]"]


def chain(w: Writer) -> Lines:
    model, name, variable = w.model(concurrent=w.sampling), w.fresh("chained"), w.text()
    if w.rng.random() < 0.3:
        built = f'ChatPromptTemplate.from_template("Answer in JSON about {{topic}}.") | {model} | parse_json'
        get = ["topic"] if model != "scripted" else []
    else:
        template = w.rng.choice(["Write a note on {topic}.", "Explain {topic} (in {topic})", "Q: {topic}\\nA:"])
        built, get = f'ChatPromptTemplate.from_template("{template}") | {model} | StrOutputParser()', []
    call = "(await chain.ainvoke" if w.is_async else "(chain.invoke"
    access = '["topic"]' if get else ""
    w.texts.append(name)
    if "parse_json" in built and not get:
        built = f"{model} | StrOutputParser()"
        return [f"chain = {built}", f"{name} = {call}({w.prompt(variable)}))", f"seen(key, {name})"]
    return [f"chain = {built}", f'{name} = seen(key, {call}({{"topic": {variable}}}))){access}']


def judge(w: Writer) -> Lines:
    asked = w.ask(w.rng.choice(["local", "local", "remote"]), w.prompt(w.text(), want="yes or no"))
    lines = [f'if "yes" in {asked}.content:', *indent(w.nested()), "else:"]
    return [*lines, *indent(w.nested() if w.rng.random() < 0.5 else effect(w))]


def embed(w: Writer) -> Lines:
    name = w.fresh("vector")
    if w.rng.random() < 0.5:
        call = f"await embed.aembed_query({w.text()})" if w.is_async else f"embed.embed_query({w.text()})"
        lines = [f"{name} = seen(key, {call})", f"{name}.append(len({name}))", f'text_{name} = f"{{sum({name}):.3f}}"']
    else:
        over = w.list()
        call = f"await embed.aembed_documents({over})" if w.is_async else f"embed.embed_documents({over})"
        lines = [f"{name} = seen(key, {call})", f'text_{name} = f"{{sum(map(sum, {name})):.3f}}"']
    w.texts.append(f"text_{name}")
    return lines


def search(w: Writer) -> Lines:
    name, query, k = w.fresh("docs"), w.text(), w.rng.choice([1, 2, 3])
    sources = ["library", "library", "rewriter"]
    if w.solo:
        sources += ["store", "store", "retriever", "store.as_retriever()"]
    source = w.rng.choice(sources)
    a, wait = ("a", "await ") if w.is_async else ("", "")
    if source in ("library", "store"):
        call = f"{wait}{source}.{a}similarity_search({query}, k={k})"
    else:
        call = f"{wait}{source}.{a}invoke({query})"
    lines = [f"{name} = seen(key, {call})"]
    if w.rng.random() < 0.2:
        lines.append(f'for doc in {name}: doc.metadata["cited"] = key')
    w.lists.append(f"texts_{name}")
    return [*lines, f"texts_{name} = [doc.page_content for doc in {name}]"]


def write(w: Writer) -> Lines:
    """Ingest, delete, or another process writes without anyone seeing it."""
    if not w.solo:
        return effect(w)
    w.uses.add("writes")
    text, several = w.text(), w.list()
    return [
        w.rng.choice(
            [
                f"store.add_texts({several})",
                f"store.add_texts([{text}])",
                f"store.add_texts([{text}], ids=['x'])",
                "store.delete(sorted(store.rows)[:1])",
                f"store.rows['hidden'] = {text}",
                f"retriever.rows['hidden'] = {text}",
            ]
        )
    ]


def write_between(w: Writer) -> Lines:
    """A read, a write, the same read, and a call that uses what was read."""
    if not w.solo:
        return search(w)
    name, query = w.fresh("again"), w.text()
    read = f"seen(key, store.similarity_search({query}, k=2))"
    joined = f"text_{name} = ' '.join(d.page_content for d in {name})"
    lines = [f"{name} = {read}", *write(w), f"{name} = {read}", joined]
    w.texts.append(f"text_{name}")
    return [*lines, *ask(w)]


def caught(w: Writer) -> Lines:
    name, model, variable = w.fresh("tried"), w.model(), w.text()
    w.texts.append(name)
    return [
        "try:",
        f"    {name} = {w.ask(model, w.prompt(variable, fragile=True))}.content",
        "except ModelError as error:",
        "    effect(key, ('caught', str(error)))",
        f"    {name} = {w.ask(model, w.prompt(variable))}.content",
    ]


def stream(w: Writer) -> Lines:
    name, model = w.fresh("streamed"), w.rng.choice(["local", "local", "remote", "follower"])
    pieces = f"{name}_pieces"
    head = f"async for chunk in {model}.astream" if w.is_async else f"for chunk in {model}.stream"
    lines = [f"{pieces} = []", f"{head}({w.prompt(w.text())}):", f"    {pieces}.append(seen(key, chunk).content)"]
    if w.rng.random() < 0.2 and not w.is_async:
        lines.append("    break")
    w.texts.append(name)
    return [*lines, f"{name} = ''.join({pieces})"]


def effect(w: Writer) -> Lines:
    return [f"effect(key, {w.rng.choice([*w.texts[-3:], *w.lists[-2:]])})"]


def mutate(w: Writer) -> Lines:
    name, variable = w.fresh("message"), w.text()
    changes = [f"{w.list()}.append({variable})", f"{w.list()}.sort()"]
    if w.solo:
        changes += [f"state['items'].append({variable})", f"state['items'].append({variable})"]
    if w.rng.random() < 0.5:
        w.uses.add("changes")
        return [w.rng.choice(changes)]
    w.texts.append(f"text_{name}")
    return [
        f"{name} = {w.ask(w.model(), w.prompt(variable))}",
        f"{name}.content += '!'",
        f"{name}.additional_kwargs['mine'] = key",
        f"text_{name} = {name}.content",
    ]


def reconfigure(w: Writer) -> Lines:
    """The program changes a field of its model."""
    if not w.solo:
        return ask(w)
    w.uses.add("fields")
    model = w.rng.choice(["local", "follower", "remote"])
    return [f"{model}.style = {w.rng.choice([w.text() + '[:3]', repr('dry')])}", *ask(w)]


def repeat(w: Writer) -> Lines:
    name = w.fresh("votes")
    asked = w.ask(w.model(), w.prompt(w.text()))
    w.lists.append(name)
    return [f"{name} = [{asked}.content for _ in range({w.rng.choice([2, 3])})]"]


BLOCKS: dict[Callable[[Writer], Lines], int] = {
    ask: 6,
    ask_list: 6,
    loop: 7,
    parallel: 2,
    batch: 1,
    chain: 3,
    judge: 2,
    embed: 2,
    search: 4,
    write: 2,
    write_between: 1,
    caught: 2,
    stream: 2,
    effect: 2,
    mutate: 2,
    reconfigure: 1,
    repeat: 1,
}
