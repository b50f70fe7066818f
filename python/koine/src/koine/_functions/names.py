"""Names that PyTorch has besides others, and questions about tensors and shapes."""
import collections

import numpy

from .. import _ops, linalg
from .._tensor import Tensor, tensor
from .creation import full


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """The tensor itself if nothing changes, unless copy=True; a copy of all else."""
    if not isinstance(obj, Tensor):
        return tensor(obj, dtype, device, requires_grad)
    made = obj.clone() if copy else obj
    if dtype is not None or device is not None:
        made = made.to(device, dtype)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data, dtype=None, device=None):
    """The tensor itself, or what `to` makes of it, with its gradient; a copy of all else."""
    return asarray(data, dtype=dtype, device=device)


def scalar_tensor(s, *, dtype='float32', device=None, requires_grad=False):
    return full((), s, dtype=dtype, device=device, requires_grad=requires_grad)


def broadcast_shapes(*shapes):
    """The shape of a result of tensors of these shapes."""
    return numpy.broadcast_shapes(*shapes)


def is_nonzero(input):
    """Of a tensor of one element."""
    return bool(input.item())


def is_complex(input):
    """False: there are no complex dtypes."""
    return False


def norm(input, p='fro', dim=None, keepdim=False, *, dtype=None):
    """The p-norm of the elements, along `dim`; 'nuc' that of the singular values."""
    input = input if dtype is None else input.to(dtype=dtype)
    if p == 'nuc':
        return linalg.matrix_norm(input, 'nuc', keepdim)
    return _ops.function('norm')(input, 2.0 if p in (None, 'fro') else float(p), dim, keepdim)


def addcdiv_(input, tensor1, tensor2, *, value=1):
    return input.copy_(_ops.function('addcdiv')(input, tensor1, tensor2, value=value))


def addcmul_(input, tensor1, tensor2, *, value=1):
    return input.copy_(_ops.function('addcmul')(input, tensor1, tensor2, value=value))


_Svd = collections.namedtuple('svd', 'U S V', module='koine')


def svd(input, some=True):
    """(U, S, V), of which linalg.svd returns V transposed."""
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return _Svd(u, s, vh.mT)


def qr(input, some=True):
    return linalg.qr(input, 'reduced' if some else 'complete')


def cholesky(input, upper=False):
    return linalg.cholesky(input, upper=upper)


def pinverse(input):
    return linalg.pinv(input)


def outer(input, vec2):
    """Each element of one vector times each of the other, in the dtype of a product of both."""
    if input.dtype is vec2.dtype and input.is_floating_point():
        return _ops.function('outer')(input, vec2)
    if input.ndim != 1 or vec2.ndim != 1:
        raise ValueError('outer: vectors are needed, not shapes %s and %s' % (input.shape, vec2.shape))
    return input.unsqueeze(1) * vec2.unsqueeze(0)


ger = outer


def _lengths(device, *ones):
    """Tensors of lengths that are tensors, or lists of numbers."""
    return [one if isinstance(one, Tensor) else tensor(one, 'int64', device) for one in ones]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False):
    lengths = _lengths(log_probs.device, input_lengths, target_lengths)
    return _ops.function('ctc_loss')(log_probs, targets, *lengths, blank, reduction, zero_infinity)
