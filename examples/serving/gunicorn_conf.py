"""gunicorn with uvicorn's workers, forked from a process that has loaded the application: `prefork`."""

import os

bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WORKERS", "2"))
worker_class = "uvicorn_worker.UvicornWorker"
preload_app = True
control_socket_disable = True
graceful_timeout = 5
"""Seconds for requests that are running when the server is told to end."""
