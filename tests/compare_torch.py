#!/usr/bin/env python3
"""Every operator of the list on random arguments, by PyTorch and by Koine, which is called by name.

    python3 tests/compare_torch.py --seconds 1800 --seed 1
    python3 tests/compare_torch.py --only softmax --seconds 10
    python3 tests/compare_torch.py --seed 1 --case 4711            # repeats one case

A case draws an operator, shapes, strides, dtypes and parameters. Compared are all outputs (dtype, shape, values) and
the gradients. Integers must be equal. Floating values must be close to PyTorch's in float64, within the error that
rounding the inputs to the case's dtype may cause, which two runs on perturbed inputs measure; or to PyTorch's own in
that dtype. A difference prints one line that repeats it. tests/compare_graphs.py compares graphs of operations.
It is run by hand; it needs PyTorch and build/lib/libkoine.so."""

import argparse
import os
import random
import sys
import time
import warnings

import torch

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare"))
from cases import UNLIKE, draw_case, has_case  # noqa: E402
from operators import Library, VOID  # noqa: E402
from koine_ctypes import Refused, library_path  # noqa: E402

EPSILON = {torch.float64: 1e-11, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


# --- running a case ---------------------------------------------------------------------------------------------------


class Outcome:
    def __init__(self):
        self.outputs, self.gradients, self.error = [], [], None


def weights(like, number):
    """Of output `number` in the loss."""
    generator = torch.Generator().manual_seed(number)
    return (torch.rand(like.shape, generator=generator, dtype=torch.float64) + 0.5).to(like.dtype)


def with_torch(case, dtype=None, noise=0.0):
    """`dtype`: that of floating inputs instead of their own; `noise`: their relative perturbation."""
    outcome, leaves, views = Outcome(), [], []
    for x in case.inputs:
        if x is None:
            views.append(None)
            leaves.append(None)
            continue
        base = x.base.clone().to(dtype if dtype and x.dtype.is_floating_point else x.dtype)
        if noise and x.dtype.is_floating_point:
            base = base * (1 + noise * (2 * torch.rand(base.shape, dtype=base.dtype) - 1))
        leaves.append(base.requires_grad_() if x.wants_grad else base)
        views.append(x.view(leaf=leaves[-1]))
    try:
        result = case.function(*views)
        outcome.outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        terms = [(y * weights(y, i)).sum() for i, y in enumerate(outcome.outputs) if y is not None and y.requires_grad]
        if terms:
            sum(terms).backward()
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        outcome.error = str(error).splitlines()[0]
    outcome.outputs = [y.detach() if y is not None else None for y in outcome.outputs]
    outcome.gradients = [leaf.grad if x is not None and x.wants_grad else None for leaf, x in zip(leaves, case.inputs)]
    return outcome


def with_koine(k, name, case):
    outcome, leaves = Outcome(), []
    k.begin()
    try:
        views = []
        for x in case.inputs:
            view, leaf = k.from_torch(x.view(), x.wants_grad) if x is not None else (None, None)
            views.append(k.apply("clone", [view])[0] if k.operators[name].in_place and not views else view)
            leaves.append(leaf)
        results = k.apply(name, views, case.params)
        outcome.outputs = [k.to_torch(y) if y else None for y in results]
        loss = None
        for i, y in enumerate(results):
            if y and k.requires_grad(y):
                weight, _ = k.from_torch(weights(outcome.outputs[i], i))
                term = k.call("kn_sum", VOID(k.apply("mul", [y, weight])[0]))
                loss = term if loss is None else k.apply("add", [loss, term])[0]
        if loss is not None:
            k.backward(loss)
        outcome.gradients = [k.gradient_of(leaf) if leaf and x.wants_grad else None
                             for leaf, x in zip(leaves, case.inputs)]
    except Refused as error:
        outcome.error = str(error)
    k.end()
    return outcome


# --- comparing --------------------------------------------------------------------------------------------------------


def close(actual, expected, tolerance):
    expected = expected.double()
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    return same | ((actual - expected).abs() <= tolerance)


def spread(exact, moved):
    """How far the results of perturbed inputs are from those of exact ones."""
    far = torch.zeros_like(exact)
    for m in moved:
        if m is not None and m.shape == exact.shape:
            far = torch.maximum(far, (m.double() - exact).abs().nan_to_num(float("inf"), float("inf")))
    return far


def differs(what, actual, native, exact, moved, error):
    """A message, or None. `native`: PyTorch's in the case's dtype; `exact`: in float64; `moved`: of perturbed inputs;
    `error`: the relative error of rounding."""
    if actual is None or exact is None:
        nothing = all(x is None or not x.any() for x in (actual, exact))  # a missing gradient is one of zeros
        return None if nothing else f"{what}: PyTorch {exact}, Koine {actual}".replace("\n", " ")
    if actual.shape != exact.shape:
        return f"{what}: shape {list(actual.shape)}, PyTorch's is {list(exact.shape)}"
    if native is not None and actual.dtype != native.dtype:
        return f"{what}: {actual.dtype}, PyTorch's is {native.dtype}"
    if not actual.is_floating_point():
        expected = native if native is not None else exact.to(actual.dtype)
        wrong = actual != expected
    else:
        exact, actual = exact.double(), actual.double()
        scale = exact.abs().nan_to_num(0, 0, 0)
        largest = scale.max() if scale.numel() else 0
        tolerance = error * (scale + 0.1 * largest + 1) + 4 * spread(exact, moved)
        expected = exact
        wrong = ~close(actual, exact, tolerance)
        if native is not None:
            wrong &= ~close(actual, native, tolerance)
    if not wrong.any():
        return None
    at = tuple(wrong.nonzero()[0].tolist())
    return f"{what}{list(at)}: Koine {actual[at].item()}, PyTorch {expected[at].item()}"


def dtype_of_case(case):
    """The coarsest floating dtype of the inputs."""
    dtypes = [x.dtype for x in case.inputs if x is not None and x.dtype.is_floating_point]
    return max(dtypes, key=EPSILON.get) if dtypes else torch.float32


def first_difference(parts, error):
    for what, actual, native, exact, moved in parts:
        found = differs(what, actual, native, exact, moved, error)
        if found:
            return found
    return None


def difference(k, name, case):
    """A message, or None."""
    exact, native = with_torch(case, torch.float64), with_torch(case)
    koine = with_koine(k, name, case)
    if exact.error and native.error:
        unfinished = "not implemented for" in native.error  # by PyTorch, for a dtype
        return None if unfinished or koine.error else f"Koine accepts what PyTorch refuses: {native.error}"
    refused = [e for e in (exact.error, native.error) if e and "not implemented for" not in e]
    if koine.error and refused:  # by PyTorch, in one of the precisions
        return None
    if koine.error:
        return f"Koine refuses it: {koine.error}"
    reference = exact if not exact.error else native
    dtype = dtype_of_case(case)
    moved = [with_torch(case, torch.float64, noise=EPSILON[dtype]) for _ in range(2)] if not exact.error else []
    parts = []
    for i, actual in enumerate(koine.outputs[:len(reference.outputs)]):
        parts.append((f"output {i}", actual, native.outputs[i] if not native.error else None, reference.outputs[i],
                      [m.outputs[i] for m in moved if not m.error]))
    for i, actual in enumerate(koine.gradients):
        parts.append((f"gradient {i}", actual, native.gradients[i] if not native.error else None,
                      reference.gradients[i], [m.gradients[i] for m in moved if not m.error]))
    return first_difference(parts, max(EPSILON[dtype], case.tolerance))


# --- the program ------------------------------------------------------------------------------------------------------


def run_case(k, names, seed, number):
    rng = random.Random(f"{seed}:{number}")
    torch.manual_seed(number)
    name = rng.choice(names)
    case = draw_case(rng, k.operators, name)
    found = difference(k, name, case)
    if found:
        print(f"python3 tests/compare_torch.py --seed {seed} --case {number}   # {name}({case}): {found}"[:600], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description="Each operator, PyTorch against Koine.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--only", default="", help="operators whose names contain this")
    parser.add_argument("--library", default=library_path())
    options = parser.parse_args()
    torch.set_num_threads(1)
    k = Library(options.library)
    missing = [name for name in k.operators if not has_case(name) and name not in UNLIKE and not name.endswith("_backward")]
    if missing:
        sys.exit("no cases in tests/compare for: " + ", ".join(missing))
    names = sorted(name for name in k.operators if has_case(name))
    if options.case is not None:
        sys.exit(1 if run_case(k, names, options.seed, options.case) else 0)
    chosen = [name for name in names if options.only in name]
    end, number, wrong = time.time() + options.seconds, 0, 0
    while time.time() < end:
        rng = random.Random(f"{options.seed}:{number}")
        if rng.choice(names) in chosen:
            wrong += run_case(k, names, options.seed, number) is not None
        number += 1
    print(f"{number} cases of {len(chosen)} operators, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
