#!/usr/bin/env python3
"""Every operator of the list on random arguments, by PyTorch and by Koine, which is called by name.

    python3 tests/compare_torch.py --seconds 1800 --seed 1
    python3 tests/compare_torch.py --only softmax --seconds 10
    python3 tests/compare_torch.py --seed 1 --case 4711            # repeats one case

A case draws an operator, shapes, strides, dtypes and parameters. Compared are all outputs (dtype, shape, values) and
the gradients. Integers must be equal. Floating values must be close to PyTorch's in float64, within the error that
rounding the inputs to the case's dtype may cause, which runs on perturbed inputs measure; or to PyTorch's own in that
dtype. Half of the cases of operators that have them compare second gradients, too: of a weighted sum of the gradients.
There each operation rounds, so runs with perturbed results of operations measure the error. A difference prints one
line that repeats it. tests/compare_graphs.py compares graphs of operations. It is run by hand; it needs PyTorch and
build/lib/libkoine.so."""

import argparse
import collections
import contextlib
import os
import random
import sys
import time
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare"))
from cases import draw_case, has_case  # noqa: E402
from draw import HALVES  # noqa: E402
from operators import Library, VOID  # noqa: E402
from koine_ctypes import Refused, library_path  # noqa: E402

EPSILON = {torch.float64: 1e-11, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


# --- running a case ---------------------------------------------------------------------------------------------------


class Outcome:
    """What one library gave. A gradient that is missing is None. `second`: of a weighted sum of the gradients, with
    respect to the inputs, then to the outputs' weights in the loss."""

    def __init__(self):
        self.outputs, self.gradients, self.second, self.error, self.second_error = [], [], None, None, None


def weights(like, number):
    """Of output `number` in the loss; of gradient i, number 100 + i. Every dtype can hold them."""
    generator = torch.Generator().manual_seed(number)
    return (torch.randint(32, 97, like.shape, generator=generator) / 64).to(like.dtype)


REFUSALS = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


class Perturbing(TorchDispatchMode):
    """Perturbs the results of operations, as rounding does, which leaves whole numbers, such as counts."""

    def __init__(self, noise):
        super().__init__()
        self.noise = noise

    def moved(self, x):
        if not x.is_floating_point() or x._is_zerotensor():  # which has no memory
            return x
        return torch.where(x == x.round(), x, x * (1 + self.noise * (2 * torch.rand_like(x) - 1)))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.is_view or function._schema.is_mutable:
            return result
        return tree_map_only(torch.Tensor, self.moved, result)


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
        torch_gradients(case, outcome, leaves)
    except REFUSALS as error:
        outcome.error = str(error).splitlines()[0]
    outcome.outputs = [y.detach() if y is not None else None for y in outcome.outputs]
    return outcome


def spread_out(leaves, found):
    """`found`, which is for the leaves that require gradients, with None for the others."""
    found = iter(found)
    return [next(found) if leaf is not None and leaf.requires_grad else None for leaf in leaves]


def torch_gradients(case, outcome, leaves):
    outcome.gradients = [None] * len(leaves)
    ends = [(y, weights(y, i).requires_grad_(case.twice)) for i, y in enumerate(outcome.outputs)
            if y is not None and y.requires_grad]
    wanted = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
    if not ends or not wanted:
        return
    loss = sum((y * w).sum() for y, w in ends)
    found = torch.autograd.grad(loss, wanted, create_graph=case.twice, allow_unused=True)
    outcome.gradients = spread_out(leaves, [g.detach() if g is not None else None for g in found])
    if not case.twice:
        return
    terms = [(g * weights(g, 100 + i)).sum() for i, g in enumerate(found) if g is not None and g.requires_grad]
    try:
        seconds = [None] * (len(wanted) + len(ends))
        if terms:
            seconds = torch.autograd.grad(sum(terms), wanted + [w for _, w in ends], allow_unused=True)
        outcome.second = spread_out(leaves, seconds[:len(wanted)]) + list(seconds[len(wanted):])
    except REFUSALS as error:
        outcome.second_error = str(error).splitlines()[0]


def with_koine(k, name, case):
    outcome, leaves = Outcome(), []
    k.begin()
    try:
        views = []
        for x in case.inputs:
            view, leaf = k.from_torch(x.view(), x.wants_grad) if x is not None else (None, None)
            changed = k.operators[name].in_place and not views
            # Koine refuses second gradients of a view that was changed.
            copied = changed and (x.wants_grad or x.overlaps or case.twice)
            views.append(k.apply("clone", [view])[0] if copied else view)
            leaves.append(leaf)
        inputs = case.arguments(k, views) if case.arguments else views
        results = k.apply(name, inputs, case.params, case.skipped)
        outcome.outputs = [k.to_torch(y) if y else None for y in results]
        koine_gradients(k, case, outcome, results, leaves)
    except Refused as error:
        outcome.error = str(error)
    k.end()
    return outcome


def weighted_sum(k, terms):
    """Of pairs of addresses."""
    total = None
    for y, weight in terms:
        term = k.call("kn_sum", VOID(k.apply("mul", [y, weight])[0]))
        total = term if total is None else k.apply("add", [total, term])[0]
    return total


def koine_gradients(k, case, outcome, results, leaves):
    outcome.gradients = [None] * len(leaves)
    ends = [(y, *k.from_torch(weights(value, i), case.twice), value.shape)
            for i, (y, value) in enumerate(zip(results, outcome.outputs)) if y and k.requires_grad(y)]
    wanted = [leaf for leaf in leaves if leaf and k.requires_grad(leaf)]
    if not ends or not wanted:
        return
    loss = weighted_sum(k, [(y, w) for y, w, *_ in ends])
    chosen = [leaf if leaf and k.requires_grad(leaf) else None for leaf in leaves]
    if not case.twice:
        k.backward(loss)
        outcome.gradients = [k.gradient_of(leaf) if leaf else None for leaf in chosen]
        return
    found = k.gradients([loss], wanted, create_graph=True)
    values = iter(found)
    found = [next(values) if leaf else None for leaf in chosen]
    outcome.gradients = [k.to_torch(g) if g else None for g in found]
    pairs = [(g, value) for leaf, g, value in zip(chosen, found, outcome.gradients) if leaf]
    terms = [(g, k.from_torch(weights(value, 100 + i))[0]) for i, (g, value) in enumerate(pairs)
             if g and k.requires_grad(g)]
    try:
        inputs = wanted + [leaf for _, _, leaf, _ in ends]
        seconds = k.gradients([weighted_sum(k, terms)], inputs) if terms else [None] * len(inputs)
        seconds = [k.to_torch(g) if g else None for g in seconds]
        values = iter(seconds)
        outcome.second = [next(values) if leaf else None for leaf in chosen]
        outcome.second += [g.view(shape) if g is not None else None for g, (*_, shape) in zip(values, ends)]
    except Refused as error:
        outcome.second_error = str(error)


# --- comparing --------------------------------------------------------------------------------------------------------


def close(actual, expected, tolerance, dtype):
    rounded, expected = expected.to(dtype).double(), expected.double()  # a large number may be infinity
    same = (actual == expected) | (actual == rounded) | (actual.isnan() & expected.isnan())
    return same | ((actual - expected).abs() <= tolerance)


def spread(exact, moved):
    """How far the results of perturbed inputs are from those of exact ones."""
    far = torch.zeros_like(exact)
    for m in moved:
        if m is not None and m.shape == exact.shape:
            far = torch.maximum(far, (m.double() - exact).abs().nan_to_num(float("inf"), float("inf")))
    return far


class Part:
    """One tensor of three outcomes. `native`: PyTorch's in the case's dtype, or None; `exact`: in float64; `moved`: a
    function that gives those of so many perturbed runs; `terms`: how many numbers of the case's size are added. A
    second gradient may be a number where PyTorch's is NaN, whose formulas divide infinities or zeros there."""

    def __init__(self, what, koine, native, exact, moved, terms):
        self.what, self.koine, self.native, self.exact, self.moved = what, koine, native, exact, moved
        self.terms, self.may_be_defined = terms, what.startswith("second")

    def difference(self, error, size):
        """A message, or None. `error`: the relative error of rounding; `size`: that of a case's terms."""
        what, actual, exact = self.what, self.koine, self.exact
        if actual is None and exact is None:
            return None
        if actual is None:  # a missing gradient is one of zeros
            like = self.native if self.native is not None else exact
            actual = self.koine = torch.zeros_like(like)
        if exact is None:
            exact = self.exact = torch.zeros_like(actual)
        if actual.shape != exact.shape:
            return f"{what}: shape {list(actual.shape)}, PyTorch's is {list(exact.shape)}"
        if self.native is not None and actual.dtype != self.native.dtype:
            return f"{what}: {actual.dtype}, PyTorch's is {self.native.dtype}"
        if not actual.is_floating_point():
            expected = self.native if self.native is not None else exact.to(actual.dtype)
            wrong = actual != expected
        else:
            expected, wrong = exact, self.far(error, size)
        if not wrong.any():
            return None
        at = tuple(wrong.nonzero()[0].tolist())
        return f"{what}{list(at)}: Koine {actual[at].item()}, PyTorch {expected[at].item()}"

    def far(self, error, size):
        """Where a floating result is close to neither of PyTorch's."""
        exact, actual = self.exact.double(), self.koine.double()
        scale = exact.abs().nan_to_num(0, 0, 0)
        largest = scale.max() if scale.numel() else 0
        tolerance = error * (scale + 0.1 * largest + size * self.terms)
        if self.native is not None:  # Koine may err as PyTorch does
            tolerance = tolerance + (self.native.double() - exact).abs().nan_to_num(0, 0, 0)
        for runs in (0, 2, 10):  # they take time: only as many as needed
            near = tolerance + 4 * spread(exact, self.moved(runs))
            wrong = ~close(actual, exact, near, self.koine.dtype)
            if self.native is not None:
                wrong &= ~close(actual, self.native, near, self.koine.dtype)
            if self.may_be_defined:
                wrong &= ~exact.isnan()
            if not wrong.any():
                break
        return wrong


def dtype_of_case(case):
    """The coarsest floating dtype of the inputs."""
    dtypes = [x.dtype for x in case.inputs if x is not None and x.dtype.is_floating_point]
    return max(dtypes, key=EPSILON.get) if dtypes else torch.float32


class Perturbed:
    """Runs on perturbed inputs, and for second gradients with perturbed results, made on first use."""

    def __init__(self, case, noise):
        self.case, self.noise, self.runs = case, noise, {False: [], True: []}

    def __call__(self, which, i, count):
        inside = which == "second"
        while len(self.runs[inside]) < count:
            with Perturbing(self.noise) if inside else contextlib.nullcontext():
                self.runs[inside].append(with_torch(self.case, torch.float64, noise=self.noise))
        return [getattr(run, which)[i] for run in self.runs[inside] if not run.error and getattr(run, which)]


def occurrences(x):
    """How often an element of an expanded input occurs. Its gradient is the sum of as many, each rounded."""
    return max(1, torch.Size(x.shape).numel() / x.base.numel()) if x is not None else 1


def is_undefined(native, exact):
    """Is a result NaN in the case's dtype that is none in float64? Then its gradients say nothing."""
    both = [(n, e) for n, e in zip(native.outputs, exact.outputs) if n is not None and e is not None]
    return any((n.isnan() & ~e.isnan()).any() for n, e in both if n.shape == e.shape)


def parts(case, koine, native, exact, moved):
    """The results to compare, from the outputs to the second gradients."""
    for which, what in (("outputs", "output"), ("gradients", "gradient"), ("second", "second gradient")):
        actual, reference, own = (getattr(outcome, which) for outcome in (koine, exact, native))
        if actual is None or reference is None or (which != "outputs" and is_undefined(native, exact)):
            continue
        for i, value in enumerate(actual[:len(reference)]):
            beside = own[i] if own is not None and i < len(own) else None
            times = occurrences(case.inputs[i]) if which != "outputs" and i < len(case.inputs) else 1
            yield Part(f"{what} {i}", value, beside, reference[i], lambda count: moved(which, i, count), times)


# Of PyTorch's errors, those about what it could compute, but does not: for a dtype, for an order of the dimensions.
UNFINISHED = ("not implemented for", "Unsupported memory format")


def difference(k, name, case):
    """A message, or None."""
    dtype = dtype_of_case(case)
    exact = native = with_torch(case)
    if dtype != torch.float64 and any(x is not None and x.dtype.is_floating_point for x in case.inputs):
        exact = with_torch(case, torch.float64)
    koine = with_koine(k, name, case)
    if exact.error and native.error:
        unfinished = any(words in native.error for words in UNFINISHED)
        return None if unfinished or koine.error else f"Koine accepts what PyTorch refuses: {native.error}"
    refused = [e for e in (exact.error, native.error) if e and not any(words in e for words in UNFINISHED)]
    if koine.error and refused:  # by PyTorch, in one of the precisions
        return None
    if koine.error:
        return f"Koine refuses it: {koine.error}"
    if koine.second_error and not exact.second_error and not native.second_error:
        return f"Koine refuses second gradients: {koine.second_error}"
    reference = exact if not exact.error else native
    for part in parts(case, koine, native, reference, Perturbed(case, EPSILON[dtype])):
        found = part.difference(max(EPSILON[dtype], case.tolerance), case.scale)
        if found:
            return found
    return None


# --- the program ------------------------------------------------------------------------------------------------------


KINDS = {"with halves": lambda x: x.dtype in HALVES, "with several dtypes": None, "with second gradients": None,
         "without dimensions": lambda x: x.ndim == 0, "of size 0": lambda x: 0 in x.shape,
         "expanded": lambda x: x.overlaps, "with NaN or infinities": lambda x: not x.base.isfinite().all()}


class Tally:
    """Which cases were run."""

    def __init__(self):
        self.cases, self.wrong = 0, 0
        self.operators, self.kinds = collections.Counter(), collections.Counter(dict.fromkeys(KINDS, 0))

    def add(self, name, case, found):
        inputs = [x for x in case.inputs if x is not None]
        self.operators[name] += 1
        self.cases += 1
        self.wrong += found is not None
        for kind, test in KINDS.items():
            self.kinds[kind] += test is not None and any(map(test, inputs))
        self.kinds["with second gradients"] += case.twice
        self.kinds["with several dtypes"] += len({x.dtype for x in inputs}) > 1

    def __str__(self):
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        return f"{self.cases} cases of {len(self.operators)} operators, {self.wrong} differ; {kinds}"

    def table(self, names):
        """How often each operator was drawn, the rarest first."""
        by_count = collections.defaultdict(list)
        for name in names:
            by_count[self.operators[name]].append(name)
        return "\n".join(f"{count:6} {' '.join(by_count[count])}" for count in sorted(by_count))


def operator_of(names, seed, number):
    """Each is drawn once in as many cases as there are operators."""
    order = list(names)
    random.Random(f"{seed}:{number // len(names)}").shuffle(order)
    return order[number % len(names)]


def run_case(k, names, seed, number, tally):
    rng = random.Random(f"{seed}:{number}")
    torch.manual_seed(number)
    name = operator_of(names, seed, number)
    case = draw_case(rng, k.operators, name)
    case.twice = case.twice and k.operators[name].is_twice_differentiable and rng.random() < 0.5
    found = difference(k, name, case)
    tally.add(name, case, found)
    if found:
        repeat = f"python3 tests/compare_torch.py --seed {seed} --case {number}"
        print(f"{repeat}   # {name}({case}): {found}"[:600], flush=True)


def main():
    parser = argparse.ArgumentParser(description="Each operator, PyTorch against Koine.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--only", default="", help="operators whose names contain this")
    parser.add_argument("--table", action="store_true", help="also print how often each operator was drawn")
    parser.add_argument("--library", default=library_path())
    options = parser.parse_args()
    torch.set_num_threads(1)
    k = Library(options.library)
    missing = [name for name in k.operators if not has_case(k.operators, name)]
    if missing:
        sys.exit("no cases in tests/compare for: " + ", ".join(missing))
    names = sorted(k.operators)
    tally = Tally()
    if options.case is not None:
        run_case(k, names, options.seed, options.case, tally)
        sys.exit(1 if tally.wrong else 0)
    chosen = [name for name in names if options.only in name]
    end, number = time.time() + options.seconds, 0
    while time.time() < end:
        if operator_of(names, options.seed, number) in chosen:
            run_case(k, names, options.seed, number, tally)
        number += 1
    if options.table:
        print(tally.table(chosen))
    print(tally)
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main()
