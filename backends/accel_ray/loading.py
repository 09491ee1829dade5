"""YAML with the lines that its fields stand on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from accel.errors import ConfigurationError
from accel_ray.mistakes import Names

Lines = dict[Names, int]
DEPTH = 4
"""engines.NAME.options.OPTION"""


def load(path: Path) -> tuple[Any, Lines]:
    """What a file says. Raises ConfigurationError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigurationError(f"There is no file {path}.", f"`accel init {path}` writes one.") from error
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.", "Give the path of a YAML file.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no text in UTF-8.", "Give the path of a YAML file.") from error
    loader = _UniqueKeys(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}, {}
        return loader.construct_document(node), dict(_lines(node, ()))
    except _Twice as error:
        raise ConfigurationError(
            f"{path}:{error.line}: {error.name!r} is there twice.", "Give each a name of its own, or leave one out."
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        why = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ConfigurationError(f"{place}: This is no YAML: {why}.", "Correct it there, or just before.") from error
    finally:
        loader.dispose()


def _lines(node: yaml.Node, within: Names) -> Iterator[tuple[Names, int]]:
    if not isinstance(node, yaml.MappingNode) or len(within) == DEPTH:
        return
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            field = (*within, str(key.value))
            yield field, key.start_mark.line + 1
            yield from _lines(value, field)


class _Twice(yaml.YAMLError):  # type: ignore[misc]
    def __init__(self, name: object, line: int) -> None:
        super().__init__(name, line)
        self.name, self.line = name, line


class _UniqueKeys(yaml.SafeLoader):  # type: ignore[misc]
    """YAML lets a second key of the same name win silently."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key, _ in node.value:
        name = loader.construct_object(key, deep=True)
        if isinstance(key, yaml.ScalarNode) and name in seen:
            raise _Twice(name, key.start_mark.line + 1)
        if isinstance(key, yaml.ScalarNode):
            seen.add(name)
    loader.flatten_mapping(node)
    return dict(loader.construct_mapping(node, deep=True))


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
