"""What a measurement was made on, in words."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine_name() -> str:
    """Cores, processor and system; the GPU, where torch sees one."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0] if models else name
    gpu = _gpu()
    return f"{os.cpu_count()} cores, {name}, {platform.system()}" + (f", {gpu}" if gpu else ", no GPU")


def _gpu() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else ""
