"""Graphs: a step is recorded once and replayed with little host time (docs/graphs.md).

    step(x, y)                                   # warm-up
    g = koine.graph.Graph()
    with g.capture():
        loss = step(x, y)
    for batch, labels in loader:
        x.copy_(batch); y.copy_(labels)
        g.replay()"""
import contextlib

from ._c import NULL, check, checked, ffi, lib, owned_text


class Graph:
    def __init__(self):
        self._h = ffi.gc(checked(lib.kn_graph_new()), lib.kn_graph_free)

    @contextlib.contextmanager
    def capture(self):
        """Records what this thread enqueues; reading a value inside is an error."""
        check(lib.kn_graph_capture_begin(self._h, NULL))
        try:
            yield self
        except BaseException:
            lib.kn_graph_capture_end(self._h)
            lib.kn_graph_reset(self._h)
            lib.kn_error_clear()
            raise
        check(lib.kn_graph_capture_end(self._h))

    def replay(self):
        check(lib.kn_graph_replay(self._h))

    def reset(self):
        check(lib.kn_graph_reset(self._h))

    def __len__(self):
        """The number of recorded commands."""
        return lib.kn_graph_command_count(self._h)

    def debug_dump(self):
        return owned_text(lib.kn_graph_debug_dump(self._h))
