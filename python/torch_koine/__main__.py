"""Where PyTorch's operators run: `python -m torch_koine` prints those that have no kernel on the device."""
import collections

import torch

_COMPOSITE = ('CompositeImplicitAutograd', 'CompositeExplicitAutograd', 'CompositeExplicitAutogradNonFunctional')


def _has(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def places():
    """{'aten::add.Tensor': 'koine'}: 'koine' (a kernel of the device), 'composite' (made of other operators) or 'cpu'
    (the fallback), for the operators that the CPU has."""
    found = {}
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith('aten::'):
            continue
        if _has(name, 'PrivateUse1'):
            found[name] = 'koine'
        elif any(_has(name, key) for key in _COMPOSITE):
            found[name] = 'composite'
        elif _has(name, 'CPU'):
            found[name] = 'cpu'
    return dict(sorted(found.items()))


def main():
    found = places()
    for name, place in found.items():
        if place == 'cpu':
            print(name)
    counts = collections.Counter(found.values())
    print('%d with a kernel of the device, %d made of others, %d on the CPU' %
          (counts['koine'], counts['composite'], counts['cpu']))


if __name__ == '__main__':
    main()
