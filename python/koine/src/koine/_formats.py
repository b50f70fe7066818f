"""PyTorch's names of memory formats. Layers lay images out as they need: clone alone asks for one."""


class memory_format:  # noqa: N801
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return 'koine.' + self._name


contiguous_format, preserve_format, channels_last, channels_last_3d = (
    memory_format(name) for name in ('contiguous_format', 'preserve_format', 'channels_last', 'channels_last_3d'))
