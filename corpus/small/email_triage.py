"""Mailbox of a clinic: category and urgency as a pydantic object, a summary, and a reply in the category's words."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

INPUTS = [
    {"sender": sender, "body": body}
    for sender, body in (
        ("Ms Alder", "Could I move my appointment on Tuesday to the week after? I am away for work."),
        ("Mr Birch", "The letter asks me to pay twice for the same blood test. I have paid in April."),
        ("Mr Cedar", "Since the new tablets I am dizzy in the morning. Should I stop them?"),
        ("Ms Elm", "I waited for two hours and nobody told me why. This can't go on."),
        ("Ms Hazel", "Please send the results of the scan to my new address in Leeds."),
        ("Mr Maple", "My daughter has a rash after the vaccination. Is that normal?"),
        ("Ms Rowan", "Is the physiotherapy on the second floor open on Saturdays?"),
        ("Mr Willow", "The invoice has the wrong insurance number, and my name is misspelt."),
        ("Ms Aspen", "Is there a free appointment for a blood test before work, at seven or so?"),
        ("Mr Hawthorn", "I was charged for an X-ray that was never taken. Please correct it."),
        ("Mr Larch", "My knee is swollen and warm since the injection. Is that to be expected?"),
        ("Ms Poplar", "Nobody picks up the phone, and your machine cuts me off. I have tried for a week."),
    )
]  # fmt: skip


class Triage(BaseModel):
    """What an email is about, and how soon it needs an answer."""

    category: Literal["appointment", "invoice", "medical", "complaint"]
    urgency: int = Field(ge=1, le=5, description="5: today")


class Mail(BaseModel):
    sender: str
    body: str
    triage: Triage | None = None
    summary: str = ""
    reply: str = ""


SUMMARY = "Summarize the email in one sentence of about 20 words.\n\nFrom: {sender}\n\n{body}"
REPLIES = {
    "appointment": "Draft a reply of about 50 words that offers {sender} two other dates.\n\n{body}",
    "invoice": "Draft a reply of about 60 words in which the office promises {sender} to check the invoice.\n\n{body}",
    "medical": "Draft a careful reply of about 70 words. Ask {sender} to call the nurse, without advice.\n\n{body}",
    "complaint": "Draft an apology of about 60 words to {sender} that says what happens next.\n\n{body}",
}


def build(parts: Any) -> Any:
    llm = parts.llm
    sorter = llm.with_structured_output(Triage)

    def classify(mail: Mail) -> dict[str, Any]:
        return {"triage": sorter.invoke(f"Sort this email to a clinic.\n\nFrom: {mail.sender}\n\n{mail.body}")}

    def summarize(mail: Mail) -> dict[str, Any]:
        return {"summary": llm.invoke(SUMMARY.format(sender=mail.sender, body=mail.body)).text}

    def draft(mail: Mail) -> dict[str, Any]:
        prompt = REPLIES[mail.triage.category].format(sender=mail.sender, body=mail.body)
        reply = llm.invoke(prompt).text
        if mail.triage.urgency >= 4:
            reply = f"[Urgent] {reply}"
        return {"reply": reply}

    graph = StateGraph(Mail)
    graph.add_node(classify)
    graph.add_node(summarize)
    graph.add_node(draft)
    graph.add_edge(START, "classify")
    graph.add_edge("classify", "summarize")
    graph.add_edge("summarize", "draft")
    graph.add_edge("draft", END)
    return graph.compile()
