"""The cross entropy of a linear layer's results: the last layer of a model and its loss."""
import dataclasses
import math
from typing import Any, Optional

from . import functional
from ._layers import CLASSES
from .module import Module


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How many rows of the input are computed at a time: batch_chunk_size, or by chunking_method as many as have logits
    of the input's size ('aspect_ratio'), but at least 256 ('auto'), or of an n-th of it ('aspect_ratio:n'). The other
    options are PyTorch's and have no effect: a backward pass may be repeated, and gradients of halves are added in
    float32."""
    allow_retain_graph: bool = False
    batch_chunk_size: Optional[int] = None
    chunking_method: Optional[str] = 'auto'
    acc_policy: str = 'auto'
    acc_dtype: Any = None

    def __post_init__(self):
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and size < 1:
            raise ValueError('LinearCrossEntropyOptions: batch_chunk_size must be at least 1, not %r' % (size,))
        if method not in (None, 'auto', 'aspect_ratio') and not (
                method.startswith('aspect_ratio:') and method[13:].isdigit() and int(method[13:]) > 0):
            raise ValueError("LinearCrossEntropyOptions: chunking_method is 'auto', 'aspect_ratio', 'aspect_ratio:n' "
                             'or None, not %r' % (method,))

    def rows(self, input, linear_weight):
        """chunk_size of the operator."""
        if self.batch_chunk_size is not None or self.chunking_method is None:
            return self.batch_chunk_size or 0
        if self.chunking_method == 'auto' or input.ndim < 2:
            return -1
        parts = int(self.chunking_method[13:] or 1)
        times = math.ceil(linear_weight.size(0) / max(linear_weight.size(-1), 1))
        rows = math.ceil(input.size(0) / max(times, 1))
        return max((1 << max(rows - 1, 0).bit_length()) // parts, 1)


class LinearCrossEntropyLoss(Module):
    """torch.nn.LinearCrossEntropyLoss: loss(input, target) with a layer of its own, `linear`."""

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,
                 reduction='mean', weight=None, ignore_index=None, label_smoothing=0.0, options=None):
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError('LinearCrossEntropyLoss: the weight of %d classes has the shape (%d,), not %s'
                               % (num_classes, num_classes, tuple(weight.shape)))
        self.num_classes, self.out_features, self.reduction = num_classes, tuple(out_features), reduction
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.register_buffer('weight', weight)
        self.linear = CLASSES['Linear'](in_features, num_classes * math.prod(self.out_features), bias=bias,
                                        device=device, dtype=dtype)

    def forward(self, input, target):
        classes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input, self.linear.weight.reshape(*classes, -1), target, weight=self.weight, reduction=self.reduction,
            linear_bias=None if bias is None else bias.reshape(*classes), ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self):
        return 'num_classes=%d, out_features=%s, reduction=%s, ignore_index=%s, label_smoothing=%s' % (
            self.num_classes, self.out_features, self.reduction, self.ignore_index, self.label_smoothing)
