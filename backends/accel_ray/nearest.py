"""What somebody probably meant."""

import difflib
from collections.abc import Iterable


def nearest(wrong: str, known: Iterable[str]) -> str:
    """For the end of a message: ", did you mean 'x'?", or nothing."""
    found = difflib.get_close_matches(str(wrong), list(known), n=1, cutoff=0.6)
    return f" (did you mean {found[0]!r}?)" if found else ""
