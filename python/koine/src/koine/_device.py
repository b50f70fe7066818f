"""Devices of all OpenCL platforms, and the host."""
from ._c import NULL, check, checked, encoded, ffi, lib, owned_text, text


def exists(name):
    found = lib.kn_device_open(encoded(name))
    if not found:
        lib.kn_error_clear()
    return bool(found)


def name_of_cuda(name):
    """Of 'cuda' or 'cuda:1': itself where there is a GPU of NVIDIA's, which the library calls so, else a GPU's."""
    return name if exists('cuda') else 'gpu' + name[4:]


class device:
    """device('auto'), 'gpu', 'gpu:1', 'cpu', 'nvidia', 'amd', 'intel', 'pocl:0', '0:1' (platform and device), part of a
    device's own name, or 'host', whose tensors are plain memory; 'cuda' is NVIDIA's or, where there is none, any GPU.
    device('gpu', 1) is device('gpu:1'). As a context manager: the thread's current device, where tensors and modules
    are made that name none."""

    __slots__ = ('_h', '_guards')

    def __init__(self, name='auto', index=None):
        if isinstance(name, device):
            self._h = name._h
        elif isinstance(name, int):
            self._h = checked(lib.kn_device_at(name))
        else:
            name = name if index is None else '%s:%d' % (name, index)
            if name == 'cuda' or name.startswith('cuda:'):
                name = name_of_cuda(name)
            self._h = checked(lib.kn_device_open(encoded(name)))
        self._guards = []

    @classmethod
    def _of(cls, pointer):
        new = cls.__new__(cls)
        new._h, new._guards = pointer, []
        return new

    @property
    def name(self):
        """The driver's name."""
        return text(lib.kn_device_name(self._h))

    @property
    def type(self):
        return ('host', 'cpu', 'gpu', 'accelerator')[lib.kn_device_get_type(self._h)]

    @property
    def index(self):
        """i of koine.device(i); -1 for the host."""
        return lib.kn_device_index(self._h)

    @property
    def properties(self):
        """What koine/device.h tells of a device, as a dict."""
        found = ffi.new('kn_device_properties *')
        check(lib.kn_device_get_properties(self._h, found))
        values = {name: getattr(found, name) for name, _ in ffi.typeof('kn_device_properties').fields}
        for name, value in values.items():
            if isinstance(value, ffi.CData):
                values[name] = text(value) if ffi.typeof(value) is ffi.typeof('char *') else list(value)
        values['type'] = self.type
        return values

    def __str__(self):
        return text(lib.kn_device_string(self._h))

    def __repr__(self):
        return "device('%s')" % self

    def __eq__(self, other):
        if isinstance(other, str):
            return self == device(other)
        return isinstance(other, device) and self._h == other._h

    def __hash__(self):
        return hash(self._h)

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        self._guards.append(ffi.new('kn_device_guard *', lib.kn_device_enter(self._h)))
        return self

    def __exit__(self, *_):
        lib.kn_device_leave(self._guards.pop())


_cpu = []  # the kn_device of 'cpu', where x.cpu() copies to, once it was found


def handle(value):
    """The kn_device of a device or a name; NULL, the current one, for None."""
    if value is None:
        return NULL
    if type(value) is str and value == 'cpu':
        if not _cpu:
            _cpu.append(device(value)._h)
        return _cpu[0]
    return value._h if isinstance(value, device) else device(value)._h


def device_count():
    """The number of OpenCL devices of all platforms; the host is not counted."""
    return lib.kn_device_count()


def devices():
    return [device(i) for i in range(device_count())]


def is_available():
    return bool(lib.kn_is_available())


def is_there(value):
    """Is there such a device?"""
    if isinstance(value, device):
        return True
    return exists(name_of_cuda(value) if value.split(':')[0] == 'cuda' else value)


def current_device():
    """Where tensors and modules are made that name no device: per thread."""
    return device._of(checked(lib.kn_device_current()))


get_default_device = current_device


def set_device(value):
    check(lib.kn_device_set_current(handle(value)))


def set_default_device(device):
    """set_device; None: the best one there is, which it is at first."""
    set_device('auto' if device is None else device)


def _given(value):
    """The kn_device of a device or a name, or the current one."""
    return handle(value) or checked(lib.kn_device_current())


def synchronize(value=None):
    """Waits for the work of a device, the current one by default, and raises what its kernels found."""
    check(lib.kn_synchronize(_given(value)))


def empty_cache(value=None):
    """Returns cached memory to the driver."""
    check(lib.kn_empty_cache(_given(value)))


def memory_allocated(value=None):
    """Bytes in use by tensors."""
    return lib.kn_memory_allocated(_given(value))


def memory_reserved(value=None):
    return lib.kn_memory_reserved(_given(value))


def max_memory_allocated(value=None):
    return lib.kn_max_memory_allocated(_given(value))


def max_memory_reserved(value=None):
    return lib.kn_max_memory_reserved(_given(value))


def reset_peak_memory_stats(value=None):
    """What max_memory_allocated and max_memory_reserved count begins again."""
    lib.kn_reset_peak_memory_stats(_given(value))


def mem_get_info(value=None):
    """(free, total) bytes."""
    free, total = ffi.new('uint64_t *'), ffi.new('uint64_t *')
    check(lib.kn_mem_get_info(_given(value), free, total))
    return free[0], total[0]


def memory_stats(value=None):
    """{'allocated_bytes.all.peak': ..., ...}: koine/memory.h."""
    device = _given(value)
    entries = ffi.new('kn_memory_stat_entry[]', lib.kn_memory_stats(device, NULL, 0))
    lib.kn_memory_stats(device, entries, len(entries))
    return {text(one.key): one.value for one in entries}


def memory_summary(value=None):
    """A table of the memory of a device."""
    return owned_text(lib.kn_memory_summary(_given(value)))


# Functions of a device, or of the current one.
OF_DEVICES = ('synchronize', 'empty_cache', 'mem_get_info', 'memory_allocated', 'max_memory_allocated',
              'memory_reserved', 'max_memory_reserved', 'memory_stats', 'reset_peak_memory_stats', 'memory_summary')
