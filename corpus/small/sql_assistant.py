"""Question to SQL: tables are picked, their schema is looked up, a query is written, checked, mended and explained."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

INPUTS = [
    {"question": question}
    for question in (
        "Which customers have ordered more than ten times this year?",
        "What is the average price of products that are out of stock?",
        "How many orders were shipped late in March?",
        "Which suppliers deliver the products with the most returns?",
        "What did customers from Norway spend on furniture?",
        "Which products were never ordered together with a shipment to Spain?",
        "How do returns differ between new and old customers?",
        "Which shipments left the warehouse without an invoice?",
        "Which supplier has the most products below five in stock?",
        "How many customers since 2020 have returned nothing?",
        "What is the most frequent reason for returns of chairs?",
        "Which orders from Portugal have not been shipped yet?",
    )
]  # fmt: skip

SCHEMA = {
    "customers": "customers(id INTEGER, name TEXT, country TEXT, since DATE)",
    "orders": "orders(id INTEGER, customer_id INTEGER, product_id INTEGER, amount INTEGER, placed DATE)",
    "products": "products(id INTEGER, supplier_id INTEGER, title TEXT, price REAL, stock INTEGER)",
    "suppliers": "suppliers(id INTEGER, name TEXT, country TEXT)",
    "shipments": "shipments(id INTEGER, order_id INTEGER, due DATE, left DATE)",
    "returns": "returns(id INTEGER, order_id INTEGER, reason TEXT)",
}


class State(TypedDict, total=False):
    question: str
    tables: list[str]
    schema: str
    query: str
    valid: bool
    answer: str


def build(parts: Any) -> Any:
    llm = parts.llm

    def pick_tables(state: State) -> State:
        prompt = (
            f"Which tables are needed? Give 4 table names, separated by commas.\n\n"
            f"Tables: {', '.join(SCHEMA)}\n\nQuestion: {state['question']}"
        )
        named = llm.invoke(prompt).text.lower()
        return {"tables": [table for table in SCHEMA if table in named] or list(SCHEMA)}

    def get_schema(state: State) -> State:
        return {"schema": "\n".join(SCHEMA[table] for table in state["tables"])}

    def write_query(state: State) -> State:
        prompt = (
            f"You write SQL. Write one query of about 40 words for the question and nothing else.\n\n"
            f"Schema:\n{state['schema']}\n\nQuestion: {state['question']}"
        )
        return {"query": llm.invoke(prompt).text.strip()}

    def check_query(state: State) -> State:
        prompt = (
            f"Does the query fit the schema? Answer yes or no.\n\nSchema:\n{state['schema']}\n\nSQL: {state['query']}"
        )
        verdict = llm.invoke(prompt).text
        return {"valid": verdict.strip().lower().startswith("yes")}

    def fix_query(state: State) -> State:
        prompt = (
            f"The query below has a mistake. Write it again in about 40 words.\n\n"
            f"Schema:\n{state['schema']}\n\nSQL: {state['query']}"
        )
        return {"query": llm.invoke(prompt).text.strip()}

    def answer(state: State) -> State:
        prompt = (
            f"Tell a manager in about 50 words what this query will show.\n\n"
            f"Question: {state['question']}\n\nSQL: {state['query']}"
        )
        return {"answer": llm.invoke(prompt).text}

    graph = StateGraph(State)
    graph.add_sequence([pick_tables, get_schema, write_query, check_query])
    graph.add_node("fix_query", fix_query)
    graph.add_node("answer", answer)
    graph.add_edge(START, "pick_tables")
    graph.add_conditional_edges("check_query", lambda state: "answer" if state["valid"] else "fix_query")
    graph.add_edge("fix_query", "answer")
    graph.add_edge("answer", END)
    return graph.compile()
