"""A call of a module with other tensors in the places of its own: torch.func.functional_call."""
from .._tensor import Tensor
from ._life import address
from ._tree import dotted
from ._parameter import Parameter


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """module(*args, **kwargs) with the tensors of a dict, or of several, by their dotted names; gradients reach those.
    A tied parameter is replaced under all of its names, unless tie_weights=False. What has a parametrization is
    replaced by the name of its original. strict=True: an error where names are missing or unknown."""
    given = _merged(parameter_and_buffer_dicts)
    places = [(dotted(place, name), owner, name, kind, tensor) for place, owner in list(module._named_modules(''))
              for name, kind, tensor in owner._own_tensors()]
    _check(module, given, places, strict)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    replaced = []
    try:
        for name, owner, own_name, kind, tensor in places:
            new = _new_of(name, tensor, given, places, tie_weights)
            if new is not None:
                replaced.append((owner, own_name, kind, tensor))
                _put(owner, own_name, kind, new)
        return module(*args, **(kwargs or {}))
    finally:
        for owner, name, kind, tensor in replaced:
            owner._register(name, tensor, kind)


def _merged(dicts):
    merged = {}
    for one in [dicts] if hasattr(dicts, 'items') else dicts:
        doubled = sorted(set(merged) & set(one))
        if doubled:
            raise ValueError('functional_call: %s is in several dicts' % ', '.join(doubled))
        merged.update(one)
    for name, one in merged.items():
        if not isinstance(one, Tensor):
            raise TypeError('functional_call: %s must be a koine.Tensor, not %s' % (name, type(one).__name__))
    return merged


def _check(module, given, places, strict):
    for name in given:
        place, _, own = name.rpartition('.')
        owner = next((one for prefix, one in module._named_modules('') if prefix == place), None)
        if owner is not None and owner._is_computed(own):
            raise ValueError('functional_call: %s is computed by a parametrization: give %s' % (
                name, dotted(place, 'parametrizations.%s.original' % own)))
    names = {one[0] for one in places}
    missing, unexpected = [name for name in sorted(names - set(given))], sorted(set(given) - names)
    if strict and (missing or unexpected):
        raise RuntimeError('functional_call: missing: %s; unexpected: %s' % (
            ', '.join(missing) or 'none', ', '.join(unexpected) or 'none'))


def _new_of(name, tensor, given, places, tie_weights):
    """What takes its place, which may have been given by another name."""
    if not tie_weights:
        return given.get(name)
    tied = [given[other] for other, _, _, _, one in places
            if other in given and address(one._h) == address(tensor._h)]
    if any(one is not tied[0] for one in tied):
        raise ValueError('functional_call: %s is tied to others, for which another tensor is given' % name)
    return tied[0] if tied else None


def _put(owner, name, kind, tensor):
    """The library wants gradients of parameters: where there are none, one that shares the tensor's memory is used."""
    if kind == 'buffer' or tensor.requires_grad:
        owner._register(name, tensor, kind)
    else:
        owner._register(name, Parameter(tensor, requires_grad=False), kind)
