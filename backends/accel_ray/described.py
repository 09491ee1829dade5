"""What the fields of a config are for: the texts under them in their class."""

import ast
import inspect
import textwrap
from itertools import pairwise


def described(made: type) -> dict[str, str]:
    """Field to text, on one line. Fields without a text are left out."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(made))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for field, below in pairwise(tree.body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            texts[field.target.id] = " ".join(below.value.value.split())
    return texts
