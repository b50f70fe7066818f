"""torch.koine: graphs, with torch.cuda's names: a step is recorded once and replayed with little work of the host."""
import threading

import torch

_classes = torch.classes.koine

_capture_streams = {}
capture_lock = threading.Lock()  # one capture at a time: they share a stream


def capture_stream():
    """A stream for captures, so that other threads can use theirs meanwhile."""
    index = torch.accelerator.current_device_index()
    if index not in _capture_streams:
        _capture_streams[index] = torch.koine.Stream()
    return _capture_streams[index]


def graph_pool_handle():
    """Memory for graphs that never run at the same time: torch.koine.graph(g, pool=...)."""
    return _classes.Pool()


def is_current_stream_capturing():
    return torch.ops.koine.is_capturing()


class KoineGraph:
    """torch.cuda.CUDAGraph. Tensors made before the capture and used in it must live as long as the graph."""

    def __init__(self):
        self._graph = _classes.Graph()
        self._pool = None

    def capture_begin(self, pool=None):
        """Records what this thread enqueues on its current stream; backward passes then run on this thread."""
        if pool is not None:
            self._pool = pool
            self._graph.use(pool)
        self._graph.begin()
        self._threads = torch.autograd.set_multithreading_enabled(False)

    def capture_end(self):
        self._threads.__exit__(None, None, None)
        self._graph.end()

    def replay(self):
        """On the current stream; returns at once."""
        self._graph.replay()

    def reset(self):
        self._graph.reset()

    def pool(self):
        """The pool given to the capture, else None: a graph's own memory is not shared."""
        return self._pool

    def debug_dump(self, path):
        """Writes what is recorded, one line for each command."""
        with open(path, 'w') as file:
            file.write(self._graph.dump())

    def __len__(self):
        """The number of commands."""
        return self._graph.commands()


class graph:
    """`with torch.koine.graph(g):` records into a KoineGraph instead of running, on a stream of its own."""

    def __init__(self, koine_graph, pool=None, stream=None):
        self.graph, self.pool, self.stream = koine_graph, pool, stream

    def __enter__(self):
        capture_lock.acquire()
        try:
            self.context = torch.koine.stream(self.stream or capture_stream())
            self.context.__enter__()
            try:
                self.graph.capture_begin(self.pool)
            except BaseException:
                self.context.__exit__()
                raise
        except BaseException:
            capture_lock.release()
            raise

    def __exit__(self, kind, error, trace):
        try:
            self.graph.capture_end()
        except RuntimeError:
            if error is None:
                raise
        finally:
            self.context.__exit__()
            capture_lock.release()
        return False
