"""What `accel.pure` gives is copied and pickled as the function or method that it was given."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import accel


@accel.pure
def squared(number: int) -> int:
    return number * number


def cubed(number: int) -> int:
    return number**3


also_cubed = accel.pure(cubed)


class Desk:
    def __init__(self, by: int) -> None:
        self.by = by

    def times(self, number: int) -> int:
        return self.by * number

    @accel.pure
    def plus(self, number: int) -> int:
        return self.by + number

    @staticmethod
    @accel.pure
    def minus(number: int) -> int:
        return -number


class Declared(Desk):
    def times(self, number: int) -> int:
        return 2 * self.by * number


accel.register(Declared, methods=["times"], readonly=True)


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("function", [squared, Desk.minus], ids=["of a module", "static"])
def test_a_function_is_pickled_by_its_name_and_copied_as_itself(function: Any) -> None:
    for same in (again, copy.copy, copy.deepcopy):
        assert same(function) is function
    assert copy.deepcopy([function]) == [function]


def test_where_the_name_is_that_of_the_function_as_it_was_that_is_pickled() -> None:
    assert again(also_cubed) is cubed
    assert again(accel.pure(functools.partial(cubed, 2)))() == 8
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(accel.pure(lambda: None))


def test_in_another_process() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(squared, [1, 2])) == [1, 4]
        assert pool.submit(Desk(3).plus, 4).result() == 7


def test_a_method_stays_bound_to_its_object_and_goes_with_its_copy() -> None:
    desk, declared = Desk(3), Declared(3)
    accel.pure(desk.times)
    for method in (desk.times, desk.plus, declared.times):
        assert copy.copy(method) == method
        assert again(method)(4) == copy.deepcopy(method)(4) == method(4)
        owner, copied = copy.deepcopy((method.__self__, method))
        assert copied.__self__ is owner is not method.__self__
    assert again(Desk.plus)(desk, 4) == copy.deepcopy(Desk.plus)(desk, 4) == 7
