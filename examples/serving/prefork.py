"""The application that gunicorn loads once and then forks: its workers begin with what was learnt before.

    MODEL_URL=http://127.0.0.1:8001/v1 gunicorn --config examples/serving/gunicorn_conf.py examples.serving.prefork:app

What was learnt goes on in a forked process; connections don't. So the components that learn have connections of their
own, which are closed before anything forks, and each worker makes its components for itself.
"""

from __future__ import annotations

import asyncio

from accel import Plan, accelerate

from .fastapi_app import create_app, warm_up
from .rag_program import Parts, async_graph, own_connections
from .settings import Settings


async def learn(settings: Settings) -> Plan:
    async with own_connections() as connections:
        parts = Parts(settings.model_url, **connections)
        await asyncio.to_thread(parts.fill)
        fast = accelerate(async_graph(parts))
        await warm_up(fast)
        plan: Plan = fast.plan
        return plan


_settings = Settings.from_environment()
app = create_app(asyncio.run(learn(_settings)) if _settings.accelerated else None)
