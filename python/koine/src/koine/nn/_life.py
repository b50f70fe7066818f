"""What keeps the modules of the library alive, and which Python objects stand for them."""
import weakref

from .._c import ffi, lib

wrappers = weakref.WeakValueDictionary()  # address of a kn_module: its Module


def address(pointer):
    return int(ffi.cast('uintptr_t', pointer))


class Life:
    """What keeps a kn_module alive: the module itself while it is a root, else what keeps its parent alive."""

    __slots__ = ('handle', 'parent')

    def __init__(self, handle):
        self.handle, self.parent = ffi.gc(handle, lib.kn_module_free), None

    def give(self, parent):
        """The module now belongs to another."""
        ffi.gc(self.handle, None)
        self.handle, self.parent = None, parent

    def take(self, pointer):
        """It is a root again."""
        self.handle, self.parent = ffi.gc(pointer, lib.kn_module_free), None


def check_is_root(module):
    if module._life.handle is None:
        raise ValueError('the %s already belongs to another module' % type(module).__name__)


def hand_over(module, life, add):
    """Gives the module to one with that life, which add(pointer) does. The library frees what it cannot add."""
    check_is_root(module)
    pointer = module._h
    module._life.give(life)
    try:
        return add(pointer)
    except BaseException:
        forget(module)
        raise


def forget(module):
    """The objects of a module that was freed, and of its parts, must not reach the library any more."""
    for child in module._children.values():
        forget(child)
    wrappers.pop(address(module._h), None)
    del module.__dict__['_h']
