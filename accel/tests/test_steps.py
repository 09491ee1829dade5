"""What steps raise is what the work of a step has raised."""

from __future__ import annotations

import traceback

import pytest

from accel.run.waits.steps import Do, Steps, take


def asked(error: BaseException) -> Steps[None]:
    def work() -> None:
        raise error

    yield Do(work)


@pytest.mark.parametrize("error", [StopIteration("stop"), ValueError("bad"), KeyboardInterrupt()], ids=repr)
def test_an_error_has_no_other_context_than_its_own(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        take(asked(error))
    assert caught.value is error
    assert (error.__context__, error.__cause__, error.__suppress_context__) == (None, None, False)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "work"


def test_an_error_is_chained_as_the_program_chains_it() -> None:
    def work() -> None:
        try:
            raise LookupError("first")
        except LookupError:
            raise StopIteration("then")  # noqa: B904

    def steps() -> Steps[None]:
        yield Do(work)

    with pytest.raises(StopIteration) as caught:
        take(steps())
    assert isinstance(caught.value.__context__, LookupError)
    assert not caught.value.__suppress_context__
