"""The tree of a module: its children, and the parameters and buffers of all of them, by dotted names."""
from ._life import uninitialized


class Tree:
    """The part of Module that walks its tree."""

    def _named_places(self):
        """The children, one that has several names here under each."""
        for name in self._child_names():
            yield name, self._child(name)

    def named_children(self):
        """Each child once."""
        return _first_places(self._named_places())

    def children(self):
        return (child for _, child in self.named_children())

    def named_modules(self, prefix='', remove_duplicate=True):
        """Itself and what is below it; remove_duplicate=False: a shared module under each of its names."""
        found = self._named_modules(prefix)
        return _first_places(found) if remove_duplicate else found

    def _named_modules(self, prefix):
        yield prefix, self
        for name, child in self._named_places():
            yield from child._named_modules(dotted(prefix, name))

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix='', recurse=True, remove_duplicate=True):
        """recurse=False: the module's own; remove_duplicate=False: a tied parameter under each of its names."""
        return self._named_tensors('parameter', prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        return (tensor for _, tensor in self._named_tensors('parameter', '', recurse, True))

    def named_buffers(self, prefix='', recurse=True, remove_duplicate=True):
        return self._named_tensors('buffer', prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def _named_tensors(self, kind, prefix, recurse, remove_duplicate):
        if remove_duplicate:
            found = self._parameters() if kind == 'parameter' else self._buffers()
        else:
            found = [(dotted(place, name), tensor) for place, module in self._named_modules('')
                     for name, what, tensor in module._own_tensors() if what == kind]
        if uninitialized:
            found += [(dotted(place, name), tensor) for place, module in self.named_modules()
                      if module in uninitialized for name, tensor in module._lazy_tensors.items()
                      if ('running' in name) == (kind == 'buffer')]
        if not prefix and recurse:
            return iter(found)
        return ((dotted(prefix, name), tensor) for name, tensor in found if recurse or '.' not in name)

    # --- by name ---

    def get_submodule(self, target):
        """The module of a dotted name; itself for ''."""
        module = self
        for name in target.split('.') if target else ():
            found = module._child(name)
            if found is None:
                raise AttributeError('%s has no child %r, for the module %r' % (type(module).__name__, name, target))
            module = found
        return module

    def get_parameter(self, target):
        return self._get_tensor('parameter', target)

    def get_buffer(self, target):
        return self._get_tensor('buffer', target)

    def _get_tensor(self, kind, target):
        place, _, name = target.rpartition('.')
        module = self.get_submodule(place)
        if not module._tensor(name) or module._is_buffer(name) != (kind == 'buffer'):
            raise AttributeError('%s has no %s %r' % (type(module).__name__, kind, name))
        return getattr(module, name)

    def apply(self, fn):
        """Calls fn(module) with each module of the tree, children before their parents."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self


def _first_places(found):
    seen = set()
    for name, module in found:
        if id(module) not in seen:
            seen.add(id(module))
            yield name, module


def dotted(prefix, name):
    return '%s.%s' % (prefix, name) if prefix else name
