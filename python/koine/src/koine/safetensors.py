"""Files of tensors by name: .safetensors, and numpy's .npy."""
from ._c import check, checked, encoded, ffi, lib, path, text
from ._device import handle
from ._tensor import borrowed, wrap


def save_file(tensors, file, metadata=None):
    """Writes {name: tensor}; `metadata` is {key: text}."""
    made = ffi.gc(checked(lib.kn_tensor_file_new()), lib.kn_tensor_file_free)
    for name, tensor in tensors.items():
        check(lib.kn_tensor_file_put(made, encoded(name), tensor._h))
    for key, value in (metadata or {}).items():
        check(lib.kn_tensor_file_set_metadata(made, encoded(key), encoded(value)))
    check(lib.kn_save_safetensors(path(file), made))


def load_file(file, device=None):
    """{name: tensor}, on `device`: the current one; 'host' to leave them in memory."""
    return _tensors(_read(file), device)


def load_metadata(file, key):
    """The text of a key; None if there is none."""
    return _metadata(_read(file), key)


def load_both(file, key, device=None):
    """What load_file and load_metadata return; reads the file once."""
    read = _read(file)
    return _tensors(read, device), _metadata(read, key)


def _read(file):
    return ffi.gc(checked(lib.kn_load_safetensors(path(file))), lib.kn_tensor_file_free)


def _tensors(read, device):
    target = handle(device) or checked(lib.kn_device_current())
    return {text(lib.kn_tensor_file_name(read, i)): wrap(lib.kn_to(borrowed(lib.kn_tensor_file_at(read, i))._h, target))
            for i in range(lib.kn_tensor_file_count(read))}


def _metadata(read, key):
    found = lib.kn_tensor_file_metadata(read, encoded(key))
    return text(found) if found else None


def load_npy(file):
    return wrap(lib.kn_load_npy(path(file)))


def save_npy(file, tensor):
    check(lib.kn_save_npy(path(file), tensor._h))
