"""Files of tensors by name: .safetensors, and numpy's .npy."""
from ._c import check, checked, ffi, lib, path, text
from ._device import handle
from ._tensor import borrowed, wrap


def save_file(tensors, file, metadata=None):
    """Writes {name: tensor}; `metadata` is {key: text}."""
    made = ffi.gc(checked(lib.kn_tensor_file_new()), lib.kn_tensor_file_free)
    for name, tensor in tensors.items():
        check(lib.kn_tensor_file_put(made, name.encode(), tensor._h))
    for key, value in (metadata or {}).items():
        check(lib.kn_tensor_file_set_metadata(made, key.encode(), value.encode()))
    check(lib.kn_save_safetensors(path(file), made))


def load_file(file, device=None):
    """{name: tensor}, on `device`: the current one; 'host' to leave them in memory."""
    read = ffi.gc(checked(lib.kn_load_safetensors(path(file))), lib.kn_tensor_file_free)
    target = handle(device) or checked(lib.kn_device_current())
    return {text(lib.kn_tensor_file_name(read, i)): wrap(lib.kn_to(borrowed(lib.kn_tensor_file_at(read, i))._h, target))
            for i in range(lib.kn_tensor_file_count(read))}


def load_metadata(file, key):
    """The text of a key; None if there is none."""
    read = ffi.gc(checked(lib.kn_load_safetensors(path(file))), lib.kn_tensor_file_free)
    found = lib.kn_tensor_file_metadata(read, key.encode())
    return text(found) if found else None


def load_npy(file):
    return wrap(lib.kn_load_npy(path(file)))


def save_npy(file, tensor):
    check(lib.kn_save_npy(path(file), tensor._h))
