"""Copies of modules: copy.deepcopy(module)."""
import copy

from .. import random
from ._hooks import copy_hooks


def deep_copy(module, memo):
    """A module of the same class, without a call of its __init__ unless it is a layer, with copies of parameters,
    buffers, children, hooks and other attributes. What is one tensor in it is one in the copy. A network that the
    library made, or a part of one, cannot be made again where Python does not know its arguments."""
    made = object.__new__(type(module))
    memo[id(module)] = made
    if '_made_with' in module.__dict__:
        _make_again(module, made, memo)
    elif '_is_part' in module.__dict__:
        raise TypeError('%s: it was made by the library, as a part of another module, and cannot be copied: only '
                        'modules that were made by calling their class can' % type(module).__name__)
    else:
        module._make_bare(made, memo)
    _fill(module, made, memo)
    return made


def _make_again(module, made, memo):
    """With its arguments; drawing its first values leaves the random numbers of the program as they are."""
    initialise, arguments, keywords = module._made_with
    state = random.get_rng_state()
    try:
        initialise(made, *copy.deepcopy(arguments, memo), **copy.deepcopy(keywords, memo))
    finally:
        random.set_rng_state(state)


def _fill(module, made, memo):
    """Gives `made`, which has the same parts that the library made, everything else."""
    made.train(module.training)  # before its children come, which have modes of their own
    for name, kind, tensor in module._own_tensors():
        made._register(name, copy.deepcopy(tensor, memo), kind)
    for name, kind in module._places.items():
        made._places.setdefault(name, kind)
    for name, child in module._named_places():
        present = made._child(name)
        if present is not None and '_is_part' in child.__dict__:
            memo[id(child)] = present
            _fill(child, present, memo)
        elif present is None or memo.get(id(child)) is not present:
            made.register_module(name, copy.deepcopy(child, memo))
    for name, value in module.__dict__.items():
        if name not in made.__dict__ and name != '_hooks':
            made.__dict__[name] = copy.deepcopy(value, memo)
    copy_hooks(module, made, lambda hook: copy.deepcopy(hook, memo))
