"""Random arguments of operators: shapes, strides, dtypes and values."""

import math

import torch

SIZES = (1, 2, 3, 4, 5, 7, 8)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, float("inf"), float("-inf"), float("nan"))
STEPS = (1, 2, 2, 3, 300)
MOST_ELEMENTS = 1 << 18  # from the first to the last of a tensor with steps, about
HALVES = (torch.float16, torch.bfloat16)


class Argument:
    """A tensor as a view of a one-dimensional leaf, so that both libraries get equal strides and offsets."""

    def __init__(self, base, shape, strides, offset, wants_grad=False):
        self.base, self.shape, self.strides, self.offset = base, tuple(shape), tuple(strides), offset
        self.wants_grad = wants_grad and base.is_floating_point()

    def view(self, dtype=None, leaf=None):
        base = leaf if leaf is not None else self.base if dtype is None else self.base.to(dtype)
        return torch.as_strided(base, self.shape, self.strides, self.offset)

    @property
    def dtype(self):
        return self.base.dtype

    @property
    def overlaps(self):
        """Do elements share memory? Then none may be changed."""
        return any(s == 0 and n > 1 for n, s in zip(self.shape, self.strides))

    @property
    def ndim(self):
        return len(self.shape)

    def __str__(self):
        text = f"{str(self.dtype)[6:]}{list(self.shape)}"
        if self.strides != torch.empty(self.shape).stride():
            text += f" strides {list(self.strides)}"
        return text + (" grad" if self.wants_grad else "")


class Case:
    """Inputs (Arguments or None), Koine's parameters, and the same in PyTorch: function(*tensors). `tolerance`: the
    relative error of PyTorch's results where it is larger than that of rounding. `twice`: whether second gradients may
    be compared. `scale`: the size of the terms whose sums are gradients, of which rounding is a part. `arguments`: a
    function of Koine's library and inputs that makes the operator's, where those are others. `skipped`: outputs that
    Koine is asked not to compute."""

    def __init__(self, inputs, params=None, function=None, tolerance=0, twice=True, scale=1, arguments=None,
                 skipped=()):
        self.inputs, self.params, self.function, self.tolerance = list(inputs), params or {}, function, tolerance
        self.twice, self.scale, self.arguments, self.skipped = twice, scale, arguments, skipped

    def __str__(self):
        words = [str(x) if x is not None else "none" for x in self.inputs]
        return ", ".join(words + [f"{name}={value}" for name, value in self.params.items()])


def without_gradient_of_nan(x):
    """Where PyTorch's gradient of NaN is unlike its own: some activations' in vectors and in single elements."""
    x.wants_grad = x.wants_grad and not x.base.isnan().any()
    return x


class Draw:
    """The random choices of one case."""

    def __init__(self, rng, operator):
        self.rng, self.operator, self.name = rng, operator, operator.name
        self.dtype = self.dtype_of(0)
        self.generator = torch.Generator().manual_seed(rng.getrandbits(48))

    # --- numbers ---

    def one_of(self, *values):
        return self.rng.choice(values)

    def chance(self, p):
        return self.rng.random() < p

    def integer(self, low, high):
        """low .. high, inclusive."""
        return self.rng.randint(low, high)

    def dim(self, x):
        """A dimension of x, counted from the front or the end."""
        n = max(x.ndim, 1)
        return self.rng.randint(-n, n - 1)

    def any_dim(self, x):
        """A dimension, or now and then a number that is none."""
        return self.dim(x) if self.chance(0.95) else self.one_of(1, -1) * (max(x.ndim, 1) + self.integer(1, 2))

    def dims(self, x, least=0):
        """Some different dimensions of x; () means all."""
        chosen = self.rng.sample(range(x.ndim), self.rng.randint(min(least, x.ndim), x.ndim))
        return tuple(d - x.ndim if self.chance(0.3) else d for d in chosen)

    # --- dtypes and shapes ---

    def dtype_of(self, index):
        """float32 often, each other dtype that the operator takes now and then."""
        dtypes = self.operator.dtypes(index)
        common = [d for d in (torch.float32, torch.float64) if d in dtypes]
        return self.rng.choice(common) if common and self.chance(0.5) else self.rng.choice(dtypes)

    def floating(self):
        dtypes = [d for d in self.operator.dtypes(0) if d.is_floating_point]
        self.dtype = self.rng.choice(dtypes + [d for d in dtypes if d not in HALVES])
        return self.dtype

    def size(self):
        return 0 if self.chance(0.03) else self.rng.choice(SIZES)

    def shape(self, least=0, most=4):
        ndim = self.rng.randint(least, most)
        shape = [self.size() for _ in range(ndim)]
        if ndim > 0 and self.chance(0.05):
            shape[-1] = self.rng.choice((33, 65, 257, 1031))
        return tuple(shape)

    def broadcasting(self, shape):
        """A shape that broadcasts with `shape`."""
        kept = list(shape)[self.rng.randint(0, len(shape)) if self.chance(0.3) else 0:]
        return tuple(1 if self.chance(0.2) else n for n in kept)

    # --- tensors ---

    def insert(self, values, choices):
        for _ in range(self.rng.randint(1, 3)):
            values[self.rng.randrange(len(values))] = self.rng.choice(choices)

    def values(self, count, dtype, low, high, special, ties=True, extremes=False):
        if dtype == torch.bool:
            return torch.rand(count, generator=self.generator) < 0.5
        extremes = extremes and self.chance(0.1)
        if not dtype.is_floating_point:
            low, high = (max(low, 0), max(high, 1)) if dtype == torch.uint8 else (low, high)
            values = torch.randint(int(low), int(high) + 1, (count,), generator=self.generator).to(dtype)
            limits = torch.iinfo(dtype)
            if extremes:
                self.insert(values, (limits.min, limits.min + 1, limits.max, limits.max // 2 + 1))
            return values
        values = torch.rand(count, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if self.chance(0.2) and ties:
            values = (values * 2).round() / 2  # ties
        if special and count > 0 and self.chance(0.25):
            self.insert(values, SPECIAL)
        limits = torch.finfo(dtype)
        if extremes:
            self.insert(values, [s * v for s in (-1, 1) for v in (limits.max, limits.tiny, limits.tiny / 4, 100, 1e4)])
        return values.to(dtype)

    def tensor(self, shape=None, dtype=None, low=-3, high=3, special=True, grad=True, least=0, most=4, layout=True,
               ties=True, extremes=False):
        """`layout` True: contiguous, or with permuted, stepped or expanded dimensions and an offset; "distinct":
        likewise without expanded ones; False: contiguous. `extremes`: now and then the largest and smallest numbers."""
        shape = self.shape(least, most) if shape is None else tuple(shape)
        dtype = dtype or self.dtype
        order, steps = list(range(len(shape))), [1] * len(shape)
        kind = self.rng.choice(("plain", "plain", "permuted", "stepped", "expanded")) if layout else "plain"
        kind = "plain" if kind == "expanded" and layout == "distinct" else kind
        if kind == "permuted":
            self.rng.shuffle(order)
        offset = self.rng.choice((0, 0, 1, 3)) if layout else 0
        strides, step, rest = [0] * len(shape), 1, math.prod(max(n, 1) for n in shape)
        for d in reversed(order):
            if kind == "stepped":
                steps[d] = self.rng.choice([s for s in STEPS if s * step * rest <= MOST_ELEMENTS or s == 1])
            if kind == "expanded" and self.chance(0.4):
                continue
            strides[d] = step * steps[d]
            step *= max(shape[d], 1) * steps[d]
            rest //= max(shape[d], 1)
        count = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides) if n > 0)
        base = self.values(max(count, 1), dtype, low, high, special, ties, extremes)
        return Argument(base, shape, strides, offset, grad and self.chance(0.8))

    def floats(self, shape=None, **options):
        return self.tensor(shape, self.floating(), **options)

    def like(self, x, shape=None, **options):
        """Another tensor of x's dtype and, unless given, shape."""
        return self.tensor(x.shape if shape is None else shape, x.dtype, **options)

    def indices(self, count, shape, dtype=torch.int64, negative=False):
        """Integers 0 .. count - 1, or -count .. count - 1."""
        return self.tensor(shape, dtype, low=-count if negative else 0, high=max(count - 1, 0), grad=False)

    def conditions(self, shape):
        return self.tensor(shape, torch.bool, grad=False)
