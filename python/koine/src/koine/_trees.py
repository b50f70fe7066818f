"""Trees of tensors: dicts, lists and tuples of them, also with names."""


def rebuilt(tree, parts):
    """A container of the tree's kind, and with its keys, that has these parts."""
    if isinstance(tree, dict):
        return type(tree)(zip(tree, parts))
    return type(tree)(*parts) if hasattr(tree, '_fields') else type(tree)(parts)


def like(tree, leaves):
    """The same tree with other leaves, which it takes from an iterator."""
    if not isinstance(tree, (dict, list, tuple)):
        return next(leaves)
    return rebuilt(tree, [like(one, leaves) for one in (tree.values() if isinstance(tree, dict) else tree)])
