#!/usr/bin/env python3
"""Random graphs of operations, views and in-place changes, computed by PyTorch and by Koine in float64.

    python3 tests/compare_graphs.py --seconds 3600 --seed 1
    python3 tests/compare_graphs.py --seed 1 --case 4711          # repeats one case, with its program

A case is 3 to 10 operations on a few leaves, some of them inside no_grad. Compared are the errors of each operation,
all values at the end, and the gradients of all leaves and whether each value requires them. A difference prints one
line that repeats it and the smallest program that still differs. Where only PyTorch refuses a backward pass, because it
keeps a reference where Koine keeps a copy, it is run again with copies.
It is run by hand; it needs PyTorch and build/lib/libkoine.so."""

import argparse
import os
import random
import sys
import time

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from compare_ops import COPYING, MAXIMA, NAMES, OPS, ROUNDED, WEIGHTS, is_new  # noqa: E402
from koine_ctypes import Koine, Refused, VOID, library_path  # noqa: E402

TOLERANCE = 1e-9
LARGEST = 1e3  # steps with larger results are skipped: rounding errors would mask differences

# --- cases -----------------------------------------------------------------------------------------------------------


class Step:
    """A leaf (no name, its values in `data`) or an operation on the results of earlier steps."""

    def __init__(self, name, arguments=(), params=(), no_grad=False, data=None, requires_grad=False):
        self.name, self.arguments, self.params, self.no_grad = name, tuple(arguments), tuple(params), no_grad
        self.data, self.requires_grad = data, requires_grad
        self.copied = False  # PyTorch saves a copy for backward

    def __str__(self):
        if self.name is None:
            return f"leaf {list(self.data.shape)}" + (" requires grad" if self.requires_grad else "")
        words = [f"v{a}" for a in self.arguments] + [str(p) for p in self.params]
        return f"{self.name}({', '.join(words)})" + (" in no_grad" if self.no_grad else "")


def draw_leaf(rng):
    shape = rng.choice(((), (3,), (1,), (4,), (2, 3), (3, 3), (4, 3), (1, 3), (3, 1), (3, 2), (2, 3, 2), (2, 3, 2, 2)))
    numbers = [round(rng.uniform(0.2, 1.8), rng.choice((1, 6))) * rng.choice((1, 1, 1, -1))
               for _ in range(int(numpy.prod(shape)))]
    return Step(None, data=numpy.array(numbers, dtype=numpy.float64).reshape(shape), requires_grad=rng.random() < 0.6)


def run_torch_step(step, values, noise=None):
    """`noise`: perturbation of the results of rounding operations."""
    if step.name is None:
        return torch.tensor(step.data, requires_grad=step.requires_grad)
    with torch.set_grad_enabled(not step.no_grad):
        try:
            result = OPS[step.name].torch(*[values[a] for a in step.arguments], *step.params)
            # PyTorch's results may have their arguments' strides, which affects whether later operations are views or
            # copies.
            relaid = is_new(step.name) and not result.is_contiguous()
            step.copied = relaid or step.name in COPYING and any(not values[a].is_contiguous() for a in step.arguments)
            result = result.contiguous() if relaid else result
            if noise is not None and step.name in ROUNDED + MAXIMA:
                result = result + noise(result.detach(), 1e-13 if step.name in ROUNDED else 1e-300)
            return result
        except (RuntimeError, IndexError, ValueError) as error:
            raise Refused(str(error)) from None


def draw_case(rng):
    """Steps valid in PyTorch: each is run when it is drawn, so that the next can be chosen by shape."""
    steps, values = [], {}
    for _ in range(rng.randint(2, 4)):
        steps.append(draw_leaf(rng))
        values[len(steps) - 1] = run_torch_step(steps[-1], values)
    wanted = len(steps) + rng.randint(3, 10)
    with_no_grad = rng.random() < 0.3
    while len(steps) < wanted:
        name = rng.choices(NAMES, WEIGHTS)[0]
        try:
            with torch.no_grad():
                arguments, params = OPS[name].draw(rng, values)
        except LookupError:
            continue
        step = Step(name, arguments, params, with_no_grad and rng.random() < 0.25)
        try:
            result = run_torch_step(step, values)
        except Refused:
            result = None
        if result is not None and (result.numel() > 400 or too_large(result)):
            if name.endswith("_"):
                break  # changes are not undone
            continue
        steps.append(step)
        if result is not None:
            values[len(steps) - 1] = result
    return steps, list(values)


def too_large(tensor):
    finite = tensor.detach()[torch.isfinite(tensor.detach())]
    return finite.numel() > 0 and finite.abs().max() > LARGEST


class Outcome:
    """The result of a program in one library."""

    def __init__(self):
        self.errors, self.values, self.wants, self.gradients = {}, {}, {}, {}
        self.backward_error = None
        self.has_loss = False


def weights(step, shape):
    return numpy.random.RandomState(step).uniform(0.5, 1.5, shape)


def with_torch(steps, outputs, noise=None):
    outcome, values = Outcome(), {}
    for i, step in enumerate(steps):
        try:
            values[i] = run_torch_step(step, values, noise)
        except Refused as error:
            outcome.errors[i] = str(error)
    try:
        loss = None
        for i in outputs:
            if i in values and values[i].requires_grad:
                part = torch.sum(values[i] * torch.tensor(weights(i, tuple(values[i].shape))))
                loss = part if loss is None else loss + part
        outcome.has_loss = loss is not None and loss.grad_fn is not None
        if outcome.has_loss:
            loss.backward()
    except RuntimeError as error:
        outcome.backward_error = str(error)
    for i, value in values.items():
        outcome.values[i] = value.detach().numpy()
        if steps[i].name is None and steps[i].requires_grad:
            outcome.gradients[i] = None if value.grad is None else value.grad.numpy()
    for i, value in values.items():
        try:
            outcome.wants[i] = value.requires_grad, value.is_leaf
        except RuntimeError:
            outcome.wants[i] = None
    return outcome


def with_koine(k, steps, outputs):
    outcome, values = Outcome(), {}
    k.begin()
    for i, step in enumerate(steps):
        before = k.set_grad_enabled(not step.no_grad)
        try:
            if step.name is None:
                values[i] = k.tensor(step.data, step.requires_grad)
            else:
                values[i] = OPS[step.name].koine(k, *[values[a] for a in step.arguments], *step.params)
        except Refused as error:
            outcome.errors[i] = str(error)
        except KeyError:
            outcome.errors[i] = "its argument was refused"
        k.set_grad_enabled(before)
    try:
        loss = None
        for i in outputs:
            if i in values and k.requires_grad(values[i]):
                shape = k.array(values[i]).shape
                part = k.call("kn_sum", VOID(k.call("kn_mul", VOID(values[i]), VOID(k.tensor(weights(i, shape))))))
                loss = part if loss is None else k.call("kn_add", VOID(loss), VOID(part))
        outcome.has_loss = loss is not None
        if outcome.has_loss:
            k.backward(loss)
    except Refused as error:
        outcome.backward_error = str(error)
    for i, value in values.items():
        outcome.values[i] = k.array(value)
        outcome.wants[i] = k.requires_grad(value), k.is_leaf(value)
        if steps[i].name is None and steps[i].requires_grad:
            outcome.gradients[i] = k.gradient(value)
    k.end()
    return outcome


# --- comparing -------------------------------------------------------------------------------------------------------

# Errors in PyTorch only: Koine fills expanded views, and a view made in no_grad is constant until the history of its
# base changes.
MORE_THAN_TORCH = ("a single memory location", "created in no_grad mode")
KEEPS_ITS_RESULT = ("backward of hardtanh",)  # PyTorch saves the argument, so its result may be changed in place
CHANGED = "changed in place after it was used"
# Whether an infinite gradient gives infinity or NaN depends on the formula, and on products with padding.
NORMALISED = ("layer_norm", "batch_norm") + tuple(name for name in NAMES if "conv" in name)
NO_DIFFERENCE = (None, "skip", "unstable")
MUTATED = "modified by an inplace operation"


def close(a, b, tolerance):
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    scale = max([1.0] + [abs(x) for x in a.flat if numpy.isfinite(x)])
    with numpy.errstate(invalid="ignore"):
        return bool(numpy.all((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (abs(a - b) <= tolerance * scale)))


def compare_arrays(what, of_torch, of_koine, tolerance=TOLERANCE):
    for i in of_torch:
        if i in of_koine and not close(of_torch[i], of_koine[i], tolerance):
            return f"{what} of v{i}: PyTorch {of_torch[i]}, Koine {of_koine[i]}".replace("\n", " ")
    return None


def without_infinities(arrays):
    return {i: a if a is None else numpy.where(numpy.isinf(a), numpy.nan, a) for i, a in arrays.items()}


def with_copies(steps, outputs):
    """with_torch, such that later changes do not affect saved values."""
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
        return with_torch(steps, outputs)


def looks_away(step):
    """PyTorch does not detect some in-place changes: of values that it copies, and of running estimates."""
    return step.copied or step.name == "batch_norm" and len(step.arguments) >= 3 + step.params[0]


def difference(k, steps, outputs):
    """The difference, or None; "skip" if there is nothing to compare."""
    t, o = with_torch(steps, outputs), with_koine(k, steps, outputs)
    for i in range(len(steps)):
        if i in t.errors and i not in o.errors and any(word in t.errors[i] for word in MORE_THAN_TORCH):
            return "skip"
        if (i in t.errors) != (i in o.errors):
            return f"v{i} = {steps[i]}: PyTorch {t.errors.get(i, 'takes it')!r}, Koine {o.errors.get(i, 'takes it')!r}"
    if t.backward_error and not o.backward_error and MUTATED in t.backward_error:
        t = with_copies(steps, outputs)
    if o.backward_error and CHANGED in o.backward_error:
        if any(word in o.backward_error for word in KEEPS_ITS_RESULT) or any(map(looks_away, steps)):
            return "skip"
    if t.backward_error and not o.backward_error and any(word in t.backward_error for word in MORE_THAN_TORCH):
        return "skip"
    if bool(t.backward_error) != bool(o.backward_error):
        return f"backward: PyTorch {t.backward_error!r}, Koine {o.backward_error!r}".replace("\n", " ")
    found = compare_arrays("values", t.values, o.values)
    if found or t.backward_error:
        return found
    found = compare_arrays("gradient", t.gradients, o.gradients)
    if found and any(step.name in NORMALISED for step in steps):
        found = compare_arrays("gradient", without_infinities(t.gradients), without_infinities(o.gradients))
    if found and any(map(looks_away, steps)):  # PyTorch used the changed values, Koine the saved ones
        found = compare_arrays("gradient", with_copies(steps, outputs).gradients, o.gradients)
    if found or any(step.no_grad for step in steps):
        return found
    for i, wants in t.wants.items():
        if wants != o.wants.get(i):
            return f"(requires_grad, is_leaf) of v{i}: PyTorch {wants}, Koine {o.wants.get(i)}"
    return None


def random_noise(seed):
    state = numpy.random.RandomState(seed)
    return lambda result, size: torch.tensor(state.uniform(-size, size, tuple(result.shape)))


def to_zero(result, size):
    return torch.where(result.abs() < size, -result, 0.0)


def judge(k, steps, outputs):
    """difference, or "unstable" if PyTorch's own results jump under perturbation by a rounding error, as with the
    logarithm of a value that should be 0."""
    found = difference(k, steps, outputs)
    if found in (None, "skip"):
        return found
    exact = with_torch(steps, outputs)
    for noise in [random_noise(seed) for seed in range(8)] + [to_zero]:
        moved = with_torch(steps, outputs, noise)
        if (compare_arrays("", exact.values, moved.values, 1e-7) or
                compare_arrays("", exact.gradients, moved.gradients, 1e-7)):
            return "unstable"
    return found


def is_difference(k, steps, outputs):
    return judge(k, steps, outputs) not in NO_DIFFERENCE


def without(steps, outputs, gone):
    """The program without one unused step, or None."""
    if any(gone in step.arguments for step in steps):
        return None
    number = [i - (i > gone) for i in range(len(steps))]
    kept = [Step(s.name, [number[a] for a in s.arguments], s.params, s.no_grad, s.data, s.requires_grad)
            for i, s in enumerate(steps) if i != gone]
    return kept, [number[i] for i in outputs if i != gone]


def shrink(k, steps, outputs):
    at = len(steps) - 1
    while at >= 0:
        fewer = [i for i in outputs if i != at]
        if at in outputs and is_difference(k, steps, fewer):
            outputs = fewer
        smaller = without(steps, outputs, at)
        if smaller and is_difference(k, *smaller):
            steps, outputs = smaller
            at = len(steps)
        at -= 1
    return steps, outputs


def report(k, seed, case, steps, outputs, found):
    print(f"python3 tests/compare_graphs.py --seed {seed} --case {case}   # {found}"[:400])
    try:
        steps, outputs = shrink(k, steps, outputs)
        found = difference(k, steps, outputs)
    except Exception as error:  # the whole program is printed
        print("    (not made smaller:", error, ")")
    for i, step in enumerate(steps):
        print(f"    v{i} = {step}")
    print(f"    backward of the sum of {', '.join(f'v{i}' for i in outputs)}")
    print(f"    {found}", flush=True)


def run_case(k, seed, case):
    rng = random.Random(f"{seed}:{case}")
    steps, values = draw_case(rng)
    outputs = sorted(rng.sample(values, min(len(values), rng.randint(1, 3))) + values[-1:])
    found = judge(k, steps, sorted(set(outputs)))
    if found not in NO_DIFFERENCE:
        report(k, seed, case, steps, sorted(set(outputs)), found)
    return found


def main():
    parser = argparse.ArgumentParser(description="Random graphs, PyTorch against Koine.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--library", default=library_path())
    options = parser.parse_args()
    torch.set_num_threads(1)
    k = Koine(options.library)
    numpy.seterr(all="ignore")
    if options.case is not None:
        return 0 if run_case(k, options.seed, options.case) in NO_DIFFERENCE else 1
    end, cases, skipped, unstable, differing = time.monotonic() + options.seconds, 0, 0, 0, 0
    while time.monotonic() < end:
        found = run_case(k, options.seed, cases)
        cases += 1
        skipped += found == "skip"
        unstable += found == "unstable"
        differing += found not in NO_DIFFERENCE
    print(f"{cases} cases, {skipped} skipped, {unstable} unstable, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
