"""What keeps the modules of the library alive, and which Python objects stand for them."""
import weakref

from .._c import ffi, lib

wrappers = weakref.WeakValueDictionary()  # address of a kn_module: its Module
tensors = weakref.WeakValueDictionary()  # address of a kn_tensor that is registered: its Parameter, or its buffer
uninitialized = weakref.WeakSet()  # lazy layers before their first call


def address(pointer):
    return int(ffi.cast('uintptr_t', pointer))


class Life:
    """What keeps a kn_module alive: the module itself while it is a root, else what keeps its parent alive. Of several
    parents that is the last one, so that part of a network does not keep the rest of it."""

    __slots__ = ('handle', 'parent', 'others', 'former', '__weakref__')

    def __init__(self, pointer=None, parent=None):
        """Without a pointer that of a root that is yet to be made: see own."""
        self.handle, self.parent, self.others = None, parent, []
        self.former = None  # the life of a lazy layer that became this one
        if pointer is not None and parent is None:
            self.own(pointer)

    def own(self, pointer):
        """The module is a root."""
        self.handle = ffi.gc(pointer, lib.kn_module_free)

    def give(self, parent):
        """The module now belongs to another, or to one more."""
        if self.handle is not None:
            ffi.gc(self.handle, None)
            self.handle = None
        if self.parent is not None:
            self.others.append(weakref.ref(self.parent))
        self.parent = parent

    def lose(self, parent):
        """It does not belong to that one any more; is it without a parent?"""
        left = [one for one in [other() for other in self.others] + [self.parent] if one is not None]
        left.remove(parent)
        self.parent = left.pop() if left else None
        self.others = [weakref.ref(one) for one in left]
        return self.parent is None

    def take(self, pointer, parent):
        """It was taken out of that one, and may be a root again."""
        if self.lose(parent):
            self.own(pointer)


def hand_over(module, life, add):
    """Gives the module to one with that life, which add(pointer) does. The library frees what it cannot add, unless it
    has another parent."""
    pointer, former = module._h, module._life.parent  # which lives until the library has added the module
    module._life.give(life)
    try:
        return add(pointer)
    except BaseException:
        if module._life.lose(life):
            forget(module)
        raise
    finally:
        del former


def forget(module):
    """The objects of a module that was freed, and of its parts, must not reach the library any more."""
    for child in module._children.values():
        if child._life.lose(module._life):
            forget(child)
    wrappers.pop(address(module._h), None)
    del module.__dict__['_h']
