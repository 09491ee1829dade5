"""SQL agent: tables are listed and looked up, a query is generated as a tool call, checked, and run on SQLite."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field

SOURCE = "SQL agent tutorial of LangGraph (https://langchain-ai.github.io/langgraph/tutorials/sql/sql-agent/)"
INPUTS = [
    {"messages": [HumanMessage(question)]}
    for question in (
        "Which artist has the most albums?", "How many tracks are longer than five minutes?",
        "What genres does the shop sell?", "Which albums appeared before 1990?",
        "What is the longest track on average?", "Who recorded an album in the year 2003?",
        "Name a few artists from Iceland.", "Which genre has the fewest tracks?",
        "How many albums did The Kettles record?", "What is the newest album in the shop?",
        "Which country do the flamenco tracks come from?", "Which tracks are shorter than four minutes?",
    )
]  # fmt: skip

SCRIPT = """
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE albums (id INTEGER PRIMARY KEY, artist_id INTEGER, name TEXT, year INTEGER);
CREATE TABLE tracks (id INTEGER PRIMARY KEY, album_id INTEGER, name TEXT, genre TEXT, seconds INTEGER);
INSERT INTO artists (name, country) VALUES ('Hrafn', 'Iceland'), ('The Kettles', 'Ireland'), ('Marta Sol', 'Spain');
INSERT INTO albums (artist_id, name, year) VALUES (1, 'Lava', 1988), (1, 'Geyser', 1994), (2, 'Steam', 2003),
    (3, 'Orange Grove', 2011), (3, 'Patio', 2016);
INSERT INTO tracks (album_id, name, genre, seconds) VALUES (1, 'Basalt', 'ambient', 412), (1, 'Moss', 'ambient', 365),
    (2, 'Boil', 'rock', 201), (3, 'Whistle', 'folk', 188), (3, 'Lid', 'folk', 240), (4, 'Blossom', 'flamenco', 305),
    (5, 'Shade', 'flamenco', 333);
"""
DIALECT = "SQLite"
TOP_K = 5
GENERATE = f"""You are an agent that works with a SQL database.

Given a question, create a {DIALECT} query that is correct, look at its results and submit the final answer to the user.
Limit the query to {TOP_K} results unless the user wants more. Order them so that the most interesting ones come first.
Never ask for all columns of a table. Do NOT run statements that change something (INSERT, UPDATE, DELETE, DROP)."""
CHECK = f"""You are a SQL expert with an eye for detail. Check the {DIALECT} query for mistakes, such as:

- NOT IN with NULL values
- UNION where UNION ALL was meant
- types that do not match in predicates
- names of columns and tables that are not quoted as they should be

If there is a mistake, rewrite the query, else repeat it. Then call the tool that runs it."""
READ_ONLY = r"SELECT (name|country|genre|year|COUNT\(\*\)|AVG\(seconds\)) FROM (artists|albums|tracks) LIMIT [1-5]"


class SubmitFinalAnswer(BaseModel):
    """Submit the final answer to the user, based on the results of queries."""

    final_answer: str = Field(description="The final answer to the user")


def build(parts: Any) -> Any:
    llm = parts.llm
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.executescript(SCRIPT)

    @tool
    def sql_db_list_tables() -> str:
        """List the tables of the database, separated by commas."""
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return ", ".join(name for (name,) in rows)

    @tool
    def sql_db_schema(table_names: list[Literal["albums", "artists", "tracks"]]) -> str:
        """Schema and sample rows of the tables. Be sure that the tables exist by calling sql_db_list_tables first."""
        shown = []
        for table in dict.fromkeys(table_names):
            (schema,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            rows = database.execute(f"SELECT * FROM {table} LIMIT 3").fetchall()
            sample = "\n".join("\t".join(map(str, row)) for row in rows)
            shown.append(f"{schema}\n\n/*\n3 rows from {table}:\n{sample}\n*/")
        return "\n\n".join(shown)

    @tool
    def sql_db_query(query: Annotated[str, Field(pattern=READ_ONLY)]) -> str:
        """Run a SQL query and return its result, or an error message. After an error rewrite the query and retry."""
        try:
            return str(database.execute(query).fetchall())
        except sqlite3.Error as error:
            return f"Error: {error}"

    get_schema_node = ToolNode([sql_db_schema], name="get_schema")
    run_query_node = ToolNode([sql_db_query], name="run_query")

    def list_tables(state: MessagesState) -> dict[str, Any]:
        tool_call = {"name": "sql_db_list_tables", "args": {}, "id": "abc123", "type": "tool_call"}
        tool_call_message = AIMessage(content="", tool_calls=[tool_call])
        tool_message = sql_db_list_tables.invoke(tool_call)
        response = AIMessage(f"Available tables: {tool_message.content}")
        return {"messages": [tool_call_message, tool_message, response]}

    def call_get_schema(state: MessagesState) -> dict[str, Any]:
        llm_with_tools = llm.bind_tools([sql_db_schema], tool_choice="any")
        return {"messages": [llm_with_tools.invoke(state["messages"])]}

    def generate_query(state: MessagesState) -> dict[str, Any]:
        system_message = {"role": "system", "content": GENERATE}
        llm_with_tools = llm.bind_tools([sql_db_query, SubmitFinalAnswer], tool_choice="any")
        return {"messages": [llm_with_tools.invoke([system_message, *state["messages"]])]}

    def check_query(state: MessagesState) -> dict[str, Any]:
        system_message = {"role": "system", "content": CHECK}
        tool_call = state["messages"][-1].tool_calls[0]
        user_message = {"role": "user", "content": tool_call["args"]["query"]}
        llm_with_tools = llm.bind_tools([sql_db_query], tool_choice="any")
        response = llm_with_tools.invoke([system_message, user_message])
        response.id = state["messages"][-1].id
        return {"messages": [response]}

    def should_continue(state: MessagesState) -> Literal["__end__", "check_query"]:
        called = [tool_call["name"] for tool_call in state["messages"][-1].tool_calls]
        return END if SubmitFinalAnswer.__name__ in called else "check_query"

    builder = StateGraph(MessagesState)
    builder.add_node(list_tables)
    builder.add_node(call_get_schema)
    builder.add_node("get_schema", get_schema_node)
    builder.add_node(generate_query)
    builder.add_node(check_query)
    builder.add_node("run_query", run_query_node)
    builder.add_edge(START, "list_tables")
    builder.add_edge("list_tables", "call_get_schema")
    builder.add_edge("call_get_schema", "get_schema")
    builder.add_edge("get_schema", "generate_query")
    builder.add_conditional_edges("generate_query", should_continue)
    builder.add_edge("check_query", "run_query")
    builder.add_edge("run_query", "generate_query")
    return builder.compile()
