"""The process that holds the local Ray of `accel up`: what it started ends with it, however it ends.

    python -m accel_ray.keeping NAMESPACE '{"num_gpus": 2}'

It says on its standard output that it is ready, and ends on SIGTERM.
"""

import logging
import signal
import sys
import tempfile
import threading

import psutil
import ray

from accel_ray.cluster import start_own
from accel_ray.config import LocalRay
from accel_ray.keeper import Kept, note


def main() -> int:
    namespace, local = sys.argv[1], LocalRay.model_validate_json(sys.argv[2])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    # Not in the cache: paths of sockets are short.
    folder = tempfile.mkdtemp(prefix="accel-ray-")
    guard = start_own(local, folder)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # Ray has put handlers of its own there
        signal.signal(number, lambda *_: ended.set())
    me = psutil.Process()
    address = ray.get_runtime_context().gcs_address
    sys.stdout.write(note(Kept(namespace, me.pid, me.create_time(), address, folder)) + "\n")
    sys.stdout.flush()
    ended.wait()
    ray.shutdown()
    guard.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
