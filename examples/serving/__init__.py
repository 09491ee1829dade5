"""Programs behind HTTP servers, as people deploy them, with one line of Accel's each: docs/deployment.md.

`fastapi_app` serves a LangGraph graph (`rag_program`), in one process, in several, and forked after it has learnt
(`prefork`). `langgraph.json` gives the same graph to LangGraph's own server. `chat_app` serves LlamaIndex's chat
engines (`chat_program`). `python -m examples.serving.load` puts each of them under load, unmodified and accelerated.
"""
