"""Email assistant: triage by a structured decision and a command, then an agent that calls tools until it is done."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field

SOURCE = "Email assistant of 'Agents from scratch' (LangChain, https://github.com/langchain-ai/agents-from-scratch)"


def _email(author: str, subject: str, email_thread: str) -> dict[str, Any]:
    return {
        "email_input": {
            "author": author,
            "to": "Rosa Lindqvist <rosa@bridgeworks.example>",
            "subject": subject,
            "email_thread": f"Dear Rosa,\n\n{email_thread}\n\nBest regards,\n{author.split()[0]}",
        }
    }


INPUTS = [
    _email("Tom Abbey <tom@bridgeworks.example>", "Load test", "can we move the load test of the footbridge to May?"),
    _email("Priya Nair <priya@harbour.example>", "Drawings", "the drawings of the east pier have no dimensions."),
    _email("Offers <news@cranes.example>", "Cranes in spring", "all our cranes are on sale until Sunday."),
    _email("Ines Costa <ines@council.example>", "Question on railings", "which height must the railings have?"),
    _email("System <no-reply@builds.example>", "Backup done", "the backup of Monday has finished without errors."),
    _email("Karl Weber <karl@steel.example>", "Delivery", "the beams arrive a week late. Can we talk on Thursday?"),
    _email("Mia Olsen <mia@bridgeworks.example>", "Review", "would you review my report on the cables by Friday?"),
    _email("Conference <info@spans.example>", "Call for papers", "you are invited to submit a talk on bridges."),
    _email("Lena Fischer <lena@harbour.example>", "Site visit", "could we visit the east pier on the first of June?"),
    _email("System <no-reply@sensors.example>", "Sensors online", "all sensors of the footbridge send data again."),
    _email("Omar Haddad <omar@council.example>", "Permit", "which drawings do you need before we sign the permit?"),
    _email("Bolts <shop@fasteners.example>", "Bolts for less", "order a thousand bolts this week and save a third."),
]


class RouterSchema(BaseModel):
    """Analyze the unread email and route it according to its content."""

    reasoning: str = Field(description="Reasoning behind the classification, step by step")
    classification: Literal["ignore", "respond", "notify"] = Field(
        description="'ignore' for irrelevant emails, 'notify' for information without a need to answer, 'respond' else"
    )


class State(MessagesState):
    email_input: dict[str, str]
    classification_decision: Literal["ignore", "respond", "notify"]


class StateInput(TypedDict):
    email_input: dict[str, str]


@tool
def write_email(to: str, subject: str, content: str) -> str:
    """Write and send an email."""
    return f"Email sent to {to} with subject '{subject}' and content: {content}"


@tool
def schedule_meeting(attendees: list[str], subject: str, duration_minutes: int, preferred_day: datetime) -> str:
    """Schedule a meeting in the calendar."""
    day = preferred_day.strftime("%A, %d %B %Y")
    return f"Meeting '{subject}' scheduled on {day} for {duration_minutes} minutes with {len(attendees)} attendees"


@tool
def check_calendar_availability(day: str) -> str:
    """Check the calendar for free times on a day."""
    return f"Available times on {day}: 9:00, 14:00, 16:00"


@tool
class Done(BaseModel):
    """The email has been sent, and there is nothing left to do."""

    done: bool


BACKGROUND = "Rosa is an engineer who plans bridges and leads a team of four."
TRIAGE_SYSTEM = """< Role >
You triage incoming emails.
</ Role >

< Background >
{background}
</ Background >

< Instructions >
Sort each email into one of three categories: IGNORE (not worth a response or a look), NOTIFY (important, but nothing to
answer) or RESPOND (needs a direct answer).
</ Instructions >

< Rules >
{triage_instructions}
</ Rules >"""
TRIAGE_USER = """Please determine how to handle the email thread below:

From: {author}
To: {to}
Subject: {subject}
{email_thread}"""
TRIAGE_INSTRUCTIONS = """Newsletters and offers are ignored. Finished builds and invitations are worth a notification.
Questions, deadlines and requests for meetings get a response."""
AGENT_SYSTEM = """< Role >
You are an executive assistant who cares about communication and schedules.
</ Role >

< Tools >
1. write_email(to, subject, content): send an email
2. schedule_meeting(attendees, subject, duration_minutes, preferred_day): schedule a meeting
3. check_calendar_availability(day): free times of a day
4. Done: the email has been sent
</ Tools >

< Instructions >
Analyze the email, call one tool after the other until the task is complete, then call Done.
</ Instructions >

< Background >
{background}
</ Background >"""


def format_email_markdown(subject: str, author: str, to: str, email_thread: str) -> str:
    return f"\n\n**Subject**: {subject}\n**From**: {author}\n**To**: {to}\n\n{email_thread}\n\n---\n"


def build(parts: Any) -> Any:
    tools = [write_email, schedule_meeting, check_calendar_availability, Done]
    tools_by_name = {tool.name: tool for tool in tools}
    llm_router = parts.llm.with_structured_output(RouterSchema)
    llm_with_tools = parts.llm.bind_tools(tools, tool_choice="any")

    def llm_call(state: State) -> dict[str, Any]:
        system = {"role": "system", "content": AGENT_SYSTEM.format(background=BACKGROUND)}
        return {"messages": [llm_with_tools.invoke([system] + state["messages"])]}

    def tool_node(state: State) -> dict[str, Any]:
        result = []
        for tool_call in state["messages"][-1].tool_calls:
            observation = tools_by_name[tool_call["name"]].invoke(tool_call["args"])
            result.append({"role": "tool", "content": observation, "tool_call_id": tool_call["id"]})
        return {"messages": result}

    def should_continue(state: State) -> Literal["Action", "__end__"]:
        if any(tool_call["name"] == "Done" for tool_call in state["messages"][-1].tool_calls):
            return END
        return "Action"

    def triage_router(state: State) -> Command[Literal["response_agent", "__end__"]]:
        email = state["email_input"]
        system_prompt = TRIAGE_SYSTEM.format(background=BACKGROUND, triage_instructions=TRIAGE_INSTRUCTIONS)
        result = llm_router.invoke(
            [
                {"role": "system", "content": system_prompt},
                {"role": "user", "content": TRIAGE_USER.format(**email)},
            ]
        )
        update: dict[str, Any] = {"classification_decision": result.classification}
        if result.classification != "respond":
            return Command(goto=END, update=update)
        content = f"Respond to the email: {format_email_markdown(**email)}"
        update["messages"] = [{"role": "user", "content": content}]
        return Command(goto="response_agent", update=update)

    agent_builder = StateGraph(State)
    agent_builder.add_node("llm_call", llm_call)
    agent_builder.add_node("environment", tool_node)
    agent_builder.add_edge(START, "llm_call")
    agent_builder.add_conditional_edges("llm_call", should_continue, {"Action": "environment", END: END})
    agent_builder.add_edge("environment", "llm_call")
    agent = agent_builder.compile()

    overall_workflow = (
        StateGraph(State, input_schema=StateInput)
        .add_node("triage_router", triage_router)
        .add_node("response_agent", agent)
        .add_edge(START, "triage_router")
    )
    return overall_workflow.compile()
