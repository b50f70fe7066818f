"""The profiler (docs/profiling.md):

    with koine.profiler.profile() as p:
        step()
    print(p.table())"""
import collections
import contextlib

from ._c import check, checked, encoded, ffi, lib, owned_text, path, text
from ._device import device


def start(record_shapes=False, with_flops=False, profile_memory=False):
    params = ffi.new('kn_profiler_params *', lib.kn_profiler_params_init())
    params.record_shapes, params.with_flops, params.profile_memory = record_shapes, with_flops, profile_memory
    check(lib.kn_profiler_start_with(params))


def stop():
    check(lib.kn_profiler_stop())


def table(sort_by='self_device_time_total', row_limit=100, peak=False, width=-1):
    """The table that torch.profiler prints."""
    params = ffi.new('kn_profiler_table_params *', lib.kn_profiler_table_params_init())
    name = ffi.new('char[]', encoded(sort_by))
    params.sort_by, params.row_limit, params.peak, params.width = name, row_limit, peak, width
    return owned_text(lib.kn_profiler_table_with(params))


def export_chrome_trace(file):
    check(lib.kn_profiler_export_chrome_trace(path(file)))


Command = collections.namedtuple('Command', 'name operation device stream enqueued start end bytes')


def commands():
    """The recorded kernels and transfers one by one; times in nanoseconds of time.monotonic_ns(), start and end 0 if
    the driver gave none."""
    count = ffi.new('int64_t *')
    found = ffi.gc(checked(lib.kn_profiler_commands(count)), lib.kn_free)
    return [Command(text(c.name), text(c.operation) if c.operation else None, device._of(c.device), c.stream,
                    c.enqueued, c.start, c.end, c.bytes) for c in found[0:count[0]]]


class profile:
    """start and stop as a context manager."""

    def __init__(self, record_shapes=False, with_flops=False, profile_memory=False):
        self.options = record_shapes, with_flops, profile_memory

    def __enter__(self):
        start(*self.options)
        return self

    def __exit__(self, *_):
        stop()

    table, export_chrome_trace = staticmethod(table), staticmethod(export_chrome_trace)
    commands = staticmethod(commands)


@contextlib.contextmanager
def record_function(name):
    """A named range."""
    check(lib.kn_range_push(encoded(name)))
    try:
        yield
    finally:
        check(lib.kn_range_pop())
