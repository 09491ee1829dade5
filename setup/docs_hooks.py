"""For mkdocs and its plugins: pages of the repository outside docs/ become pages of the site, and links are those of
the repository.

A link from one page to another is written as it works in the repository, `../bench/RESULTS.md`, say. Where its target
is a page of the site it leads there. Where it is another file, its name remains without a link. One that leads to
nothing is a warning, and so an error of `mkdocs build --strict`.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "compat_tests/README.md")
FOLDERS = ("bench/*.md", "bench/pictures/*")

_LINK = re.compile(r"(?P<shown>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?P<to>[^()\s#]+)(?P<anchor>#[^()\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"^(?=``?\w+``?(?:, ``?\w+``?)*: )", re.MULTILINE)
_log = logging.getLogger("mkdocs.hooks.repository")


def on_files(files: Any, config: Any) -> Any:
    found = [*(ROOT / page for page in PAGES), *(path for folder in FOLDERS for path in sorted(ROOT.glob(folder)))]
    for path in found:
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = page.file.src_uri
    place = posixpath.dirname(f"docs/{here}" if (ROOT / "docs" / here).exists() else here)

    def led(found: re.Match[str]) -> str:
        if ":" in found["to"]:
            return found[0]
        target = posixpath.normpath(posixpath.join(place, found["to"]))
        uri = target.removeprefix("docs/")
        if files.get_file_from_path(uri) is not None:
            to = posixpath.relpath(uri, posixpath.dirname(here) or ".")
            return f"{found['shown']}({to}{found['anchor'] or ''})"
        if not (ROOT / target).exists():
            _log.warning("%s links to %s, which is not there", here, found["to"])
        return found["shown"][1:-1]

    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(led, part) for number, part in enumerate(parts))


class OptionsAsList(griffe.Extension):
    """Docstrings name an option at the beginning of a line: on the site each is an item."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None and (first := _OPTION.search(obj.docstring.value)) is not None:
            text, at = obj.docstring.value, first.start()
            obj.docstring.value = f"{text[:at].rstrip()}\n\n{_OPTION.sub('- ', text[at:])}"
