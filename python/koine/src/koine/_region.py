"""Modes of a thread that hold in a `with` block, or during a function."""
import functools


class Region:
    """A subclass has _begin(), which returns what was before, and _end(before); _again() makes one more like it, since
    threads may call a decorated function at once."""

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(self._begin())
        return self

    def __exit__(self, *_):
        self._end(self._before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*arguments, **keywords):
            with self._again():
                return function(*arguments, **keywords)
        return wrapped
