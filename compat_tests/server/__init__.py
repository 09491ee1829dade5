"""An ordinary RAG server under load, with real clients: the answers of its accelerated graph against the plain one's.

Three processes on loopback: a model server that speaks OpenAI's protocol (`examples.serving.model_server`), an
application server with FastAPI (`rag_server`), and the load (`load`). Nothing here knows Accel but by
`accelerate(graph)` and `report()`.
"""
