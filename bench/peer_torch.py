#!/usr/bin/env python3
"""PyTorch's side of bench/compare.py: a process that does the same work as koine-bench, on the same values, on request.

Requests and answers are JSON objects, one per line, on standard input and output:

    {"do": "setup", "case": {...}, "inputs": PATH or null}  -> {"supported": ..., "seconds": ...}
    {"do": "run", "count": N}                               -> {"seconds": of one}
    {"do": "check", "results": PATH}                        -> {"difference": ..., "tolerance": ..., "what": ...}
    {"do": "memory"}                                        -> {"bytes": most of one repetition's tensors, or null}
    {"do": "teardown"}                                      -> {}

"case" is a line of koine-bench --list --json. Other programs with this protocol can be peers too:
compare.py --peer-program PATH.
"""
import argparse
import json
import os
import sys
import time

START = time.perf_counter()
os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # the profiler, which counts memory, would announce itself

import torch
import torch.nn.functional as F

import peer_device
from peer_device import allow_tf32, use_device, version, wait
from peer_files import difference, read_tensors
from peer_networks import TRAINING
from peer_training import Epoch, Inference, Start, Training, compile_afresh, first_step, network_of

# The largest differences allowed, relative to the largest magnitude: sums of thousands of products in another order
# differ by some 1e-6 in f32; f16 results are rounded to 11 bits, as are TF32's operands, and bf16's to 8. Of steps:
# peer_training.py.
TOLERANCE = {'float32': 1e-4, 'float64': 1e-10, 'float16': 2e-3, 'bfloat16': 1.6e-2}
TOLERANCE_OF_TF32 = 2e-3
# How far the share of zeros may be from dropout's p.
DROPOUT_SHARE = 0.01


def gelu_chain(x, p):
    inner = x[0] + (x[0] ** 3) * 0.044715
    return (x[0] * 0.5) * (torch.tanh(inner * 0.7978845608028654) + 1)


def gelu_products(x):
    inner = (x + (x * x * x) * 0.044715) * 0.7978845608028654
    return (x * 0.5) * (torch.tanh(inner) + 1)


# Like bench_operation.apply: functions of the inputs and the parameters of the case.
OPERATIONS = {
    'matmul': lambda x, p: x[0] @ x[1],
    'matmul_nt': lambda x, p: x[0] @ x[1].transpose(1, 2),
    'conv2d': lambda x, p: F.conv2d(x[0], x[1], None, int(p[0]), int(p[1]), int(p[3]), int(p[2])),
    'conv1d': lambda x, p: F.conv1d(x[0], x[1], None, int(p[0]), int(p[1]), int(p[2]), int(p[3])),
    'conv3d': lambda x, p: F.conv3d(x[0], x[1], None, int(p[0]), (int(p[2]), int(p[1]), int(p[1])), 1, int(p[3])),
    'conv_transpose1d': lambda x, p: F.conv_transpose1d(x[0], x[1], None, int(p[0]), int(p[1])),
    'conv_transpose3d': lambda x, p: F.conv_transpose3d(x[0], x[1], None, int(p[0]), int(p[1])),
    'max_pool2d': lambda x, p: F.max_pool2d(x[0], int(p[0]), int(p[1]), int(p[2])),
    'image_mean': lambda x, p: F.adaptive_avg_pool2d(x[0], 1),
    'add': lambda x, p: x[0] + x[1],
    'mul': lambda x, p: x[0] * x[1],
    'multiply_by': lambda x, p: x[0] * p[0],
    'relu': lambda x, p: torch.relu(x[0]),
    'exponential': lambda x, p: torch.exp(x[0]),
    'to_float32': lambda x, p: x[0].float(),
    'to_float16': lambda x, p: x[0].half(),
    'gelu_chain': gelu_chain,
    'dropout': lambda x, p: F.dropout(x[0], p[0]),
    'gather': lambda x, p: torch.gather(x[0], int(p[0]), x[1]),
    'scatter_add': lambda x, p: torch.scatter_add(x[0], int(p[0]), x[1], x[2]),
    'index_select': lambda x, p: torch.index_select(x[0], int(p[0]), x[1]),
    'index_add': lambda x, p: torch.index_add(x[0], int(p[0]), x[1], x[2]),
    'index_put_add': lambda x, p: torch.index_put(x[0], (x[1], x[2]), x[3], accumulate=True),
    'masked_select': lambda x, p: torch.masked_select(x[0], x[1]),
    'masked_fill': lambda x, p: torch.masked_fill(x[0], x[1], p[0]),
    'where': lambda x, p: torch.where(x[1], x[0], x[2]),
    'nonzero': lambda x, p: torch.nonzero(x[0]),
    'one_hot': lambda x, p: F.one_hot(x[0], int(p[0])),
    'repeat_each': lambda x, p: torch.repeat_interleave(x[0], x[1], int(p[0])),
    'embedding_bag': lambda x, p: F.embedding_bag(x[1], x[0]),
    'embedding': lambda x, p: F.embedding(x[1], x[0]),
    'sum': lambda x, p: torch.sum(x[0]),
    'mean': lambda x, p: torch.mean(x[0]),
    'max': lambda x, p: torch.max(x[0]),
    'logsumexp': lambda x, p: torch.logsumexp(x[0], int(p[0])),
    'sum_dim': lambda x, p: torch.sum(x[0], int(p[0])),
    'max_dim': lambda x, p: torch.max(x[0], int(p[0])).values,
    'attention': lambda x, p: F.scaled_dot_product_attention(x[0], x[1], x[2], is_causal=p[0] != 0),
    'sort': lambda x, p: torch.sort(x[0], int(p[0])).values,
    'topk': lambda x, p: torch.topk(x[0], int(p[0])).values,
    'argsort': lambda x, p: torch.argsort(x[0], int(p[0])),
    'kthvalue': lambda x, p: torch.kthvalue(x[0], int(p[0])).values,
    'median': lambda x, p: torch.median(x[0], -1).values,
    'cumsum': lambda x, p: torch.cumsum(x[0], int(p[0])),
    'cumprod': lambda x, p: torch.cumprod(x[0], int(p[0])),
    'logcumsumexp': lambda x, p: torch.logcumsumexp(x[0], int(p[0])),
    'cummax': lambda x, p: torch.cummax(x[0], int(p[0])).values,
    'unique': lambda x, p: torch.unique(x[0]),
    'bucketize': lambda x, p: torch.bucketize(x[0], torch.cumsum(x[1], 0)).float(),
    'searchsorted': lambda x, p: torch.searchsorted(torch.cumsum(x[1], 1), x[0]),
    'rand_like': lambda x, p: torch.rand_like(x[0]),
    'randn_like': lambda x, p: torch.randn_like(x[0]),
    'randint': lambda x, p: torch.randint(0, int(p[0]), (x[0].numel(),), device=x[0].device),
    'bernoulli': lambda x, p: torch.bernoulli(x[0]),
    'exponential_': lambda x, p: x[0].exponential_(p[0]),
    'poisson': lambda x, p: torch.poisson(x[0]),
    'multinomial': lambda x, p: torch.multinomial(x[0], int(p[0]), p[1] != 0),
    'softmax': lambda x, p: torch.softmax(x[0], int(p[0])),
    'log_softmax': lambda x, p: torch.log_softmax(x[0], int(p[0])),
    'layer_norm': lambda x, p: F.layer_norm(x[0], x[1].shape, x[1], x[2], 1e-5),
    'vision_pad': lambda x, p: F.pad(x[0], [int(p[0])] * 4, 'reflect'),
    'vision_unfold': lambda x, p: F.unfold(x[0], int(p[0]), 1, int(p[1])),
    'vision_bilinear': lambda x, p: F.interpolate(x[0], scale_factor=2, mode='bilinear'),
    'vision_grid_sample': lambda x, p: F.grid_sample(x[0], x[1], align_corners=False),
    'rms_norm': lambda x, p: F.rms_norm(x[0], x[1].shape, x[1], 1e-5),
    'group_norm': lambda x, p: F.group_norm(x[0], int(p[0]), x[1], x[2], 1e-5),
    'batch_norm': lambda x, p: F.batch_norm(x[0], x[3], x[4], x[1], x[2], True, 0.1, 1e-5),
    'transpose': lambda x, p: x[0].transpose(int(p[0]), int(p[1])).contiguous(),
    'flip': lambda x, p: torch.flip(x[0], [int(p[0])]),
    'roll': lambda x, p: torch.roll(x[0], int(p[0]), int(p[1])),
    'tril': lambda x, p: torch.tril(x[0], int(p[0])),
    'channels_last': lambda x, p: x[0].permute(0, 2, 3, 1).contiguous(),
}


def function_of(operation):
    """One of OPERATIONS, or an expression of the inputs a, b, ..."""
    if operation in OPERATIONS:
        return OPERATIONS[operation]
    expression = eval('lambda a=None, b=None, c=None, d=None, e=None: ' + operation, {'torch': torch, 'F': F})
    return lambda x, p: expression(*x)


class Operation:
    """One operation, forward, or the gradients of a forward pass that was recorded once."""

    def __init__(self, case, tensors):
        self.case, self.apply, self.p = case, function_of(case['operation']), case['parameters']
        self.wanted = [i for i in range(len(case['transposed'])) if case['gradients'] >> i & 1]
        self.x = []
        for i, transposed in enumerate(case['transposed']):
            x = tensors['in%d' % i]
            x = x.t().contiguous().t() if transposed else x
            self.x.append(x.requires_grad_(i in self.wanted))
        self.first = None
        if self.wanted:
            self.y, self.gradient = self.apply(self.x, self.p), tensors['gradient']

    def run(self):
        if self.wanted:  # into .grad, as Koine and as in training: a gradient that is a view is copied there
            leaves = [self.x[i] for i in self.wanted]
            for leaf in leaves:
                leaf.grad = None
            self.y.backward(self.gradient, retain_graph=True, inputs=leaves)
            result = [leaf.grad for leaf in leaves]
        else:
            result = self.apply(self.x, self.p)
        if self.first is None:
            self.first = result

    def results(self):
        first, self.first = self.first, False
        return {'grad%d' % i: g.cpu() for i, g in zip(self.wanted, first)} if self.wanted else {'out': first.cpu()}

    def check(self, theirs):
        """`theirs`: Koine's. Of a large result only the first rows are compared."""
        mine = self.results()
        tolerance = TOLERANCE_OF_TF32 if self.case['tf32'] else TOLERANCE[self.case['dtype']]
        if self.case['operation'] == 'dropout':
            return self.check_dropout(mine['out'], theirs['out'], tolerance)
        worst = max((difference(t, mine[name][:t.shape[0]] if t.dim() else mine[name]), name)
                    for name, t in theirs.items())
        return {'difference': worst[0], 'tolerance': tolerance, 'what': worst[1]}

    def check_dropout(self, mine, theirs, tolerance):
        """Random draws differ: compares the shares of zeros, and the values where neither is zero."""
        mine = mine[:theirs.shape[0]]
        for side in (mine, theirs):
            share = (side == 0).double().mean().item()
            if abs(share - self.p[0]) > DROPOUT_SHARE:
                return {'difference': abs(share - self.p[0]), 'tolerance': DROPOUT_SHARE, 'what': 'share of zeros'}
        both = (mine != 0) & (theirs != 0)
        return {'difference': difference(theirs[both], mine[both]), 'tolerance': tolerance,
                'what': 'out where neither is 0'}


def dropout_norm(x, residual, weight, bias):
    return F.layer_norm(F.dropout(x, 0.1) + residual, weight.shape, weight, bias, 1e-5)


class Fusion:
    """A chain of operations that a compiler may fuse, forward, or forward and backward (`step`)."""

    def __init__(self, name, tensors, compiled):
        self.trains, names = name.endswith('/step'), ('x', 'residual', 'weight', 'bias')
        self.x = [tensors[n].requires_grad_(self.trains) for n in names if n in tensors]
        self.names = ['grad' if n == 'x' else n + '_gradient' for n in names if n in tensors]
        function = dropout_norm if 'dropout_norm' in name else gelu_products
        self.apply = compile_afresh(function) if compiled else function
        self.gradient, self.first = tensors['gradient'], None

    def run(self):
        y = self.apply(*self.x)
        gradients = torch.autograd.grad(y, self.x, self.gradient) if self.trains else ()
        if self.first is None:
            self.first = {'out': y.detach().cpu(), **{n: g.cpu() for n, g in zip(self.names, gradients)}}

    def check(self, theirs):
        """What dropout draws differs: of it, only the bias's gradient is compared."""
        worst = max((difference(t, self.first[n][:t.shape[0]]), n) for n, t in theirs.items() if n in self.first)
        return {'difference': worst[0], 'tolerance': TOLERANCE['float32'], 'what': worst[1]}


class Steps:
    """Optimizer steps on given parameters and gradients, by the faster of PyTorch's implementations."""

    def __init__(self, name, tensors):
        self.parameters = []
        for i in range(sum(key.startswith('p') for key in tensors)):
            self.parameters.append(torch.nn.Parameter(tensors['p%d' % i]))
            self.parameters[-1].grad = tensors['g%d' % i]
        self.optimizer, self.results = self.fastest(name), None

    def fastest(self, name):
        options = {'lr': 1e-3, **({'momentum': 0.9} if name in ('SGD', 'RMSprop') else {})}
        found = []
        for extra in ({'fused': True}, {'foreach': True}, {'foreach': False}):
            copies = [torch.nn.Parameter(p.detach().clone()) for p in self.parameters]
            for copy, p in zip(copies, self.parameters):
                copy.grad = p.grad
            try:
                optimizer = getattr(torch.optim, name)(copies, **options, **extra)
                optimizer.step()
            except (RuntimeError, TypeError, ValueError):
                continue
            found.append((min(self.seconds(optimizer) for _ in range(3)), extra))
        return getattr(torch.optim, name)(self.parameters, **options, **min(found, key=lambda pair: pair[0])[1])

    @staticmethod
    def seconds(optimizer):
        start = time.perf_counter()
        optimizer.step()
        wait()
        return time.perf_counter() - start

    def run(self):
        self.optimizer.step()
        if self.results is None:
            self.results = [p.detach().cpu().clone() for p in self.parameters]

    def check(self, theirs):
        worst = max((difference(theirs['p%d' % i], mine), 'parameter %d' % i) for i, mine in enumerate(self.results))
        return {'difference': worst[0], 'tolerance': TOLERANCE['float32'], 'what': worst[1]}


def make(case, tensors, mode, threads):
    """The object that runs the case's repetitions; None if it is not supported here."""
    name = case['name']
    compiled = mode == 'compile'
    allow_tf32(case.get('tf32', False))
    if network_of(name) in TRAINING and tensors and name.endswith('/inference'):
        return Inference(network_of(name), tensors, compiled)
    if network_of(name) in TRAINING and tensors:
        return Training(network_of(name), tensors, compiled, case['replayed'], case['dtype'] == 'bfloat16')
    if name.startswith('fusion/') and tensors:
        return Fusion(name, tensors, compiled)
    if name.startswith('optim/') and hasattr(torch.optim, name[len('optim/'):]) and not compiled:
        return Steps(name[len('optim/'):], tensors)
    if name == 'mnist_epoch':
        return Epoch(compiled)
    if name in ('startup/cold', 'startup/warm'):
        return Start(name == 'startup/cold', mode, threads)
    if 'operation' in case and tensors and not compiled:
        return Operation(case, tensors)
    return None


def run(work, count):
    start = time.perf_counter()
    for _ in range(count):
        work.run()
    wait()
    return (time.perf_counter() - start) / max(count, 1)


def serve(mode, threads, reply):
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        try:
            if request['do'] == 'setup':
                start = time.perf_counter()
                tensors = {name: t.to(peer_device.DEVICE) for name, t in read_tensors(request['inputs']).items()} \
                    if request['inputs'] else None
                work = make(request['case'], tensors, mode, threads)
                answer = {'supported': work is not None, 'seconds': time.perf_counter() - start}
            elif request['do'] == 'run':
                answer = {'seconds': run(work, request['count'])}
            elif request['do'] == 'check':
                answer = work.check(read_tensors(request['results']))
            elif request['do'] == 'memory':
                answer = {'bytes': work.memory() if hasattr(work, 'memory') else None}
            elif request['do'] == 'teardown':
                work = None
        except Exception as error:
            answer = {'error': '%s: %s' % (type(error).__name__, ' '.join(str(error).split()))}
        reply(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mode', default='eager', choices=['eager', 'compile', 'benchmark'])
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:1, xpu, ...')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--first-step', action='store_true', help='make one training step and exit')
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    use_device(arguments.device, arguments.mode)
    device = peer_device.DEVICE
    torch.manual_seed(0)
    if arguments.first_step:
        return first_step(arguments.mode)
    out = os.fdopen(os.dup(1), 'w', buffering=1)  # all other output is redirected to standard error
    os.dup2(2, 1)

    def reply(answer):
        out.write(json.dumps(answer) + '\n')

    if arguments.mode == 'benchmark' and device.type != 'cuda':
        reply({'error': "--mode benchmark needs a GPU: it times cuDNN's algorithms"})
        return
    if arguments.mode == 'compile' and not hasattr(torch, 'compile'):
        reply({'error': 'torch %s has no torch.compile' % torch.__version__})
        return
    reply({'peer': 'torch' if device.type == 'cpu' else 'torch on ' + str(device), 'version': version(),
           'mode': arguments.mode, 'device_type': device.type, 'start_s': time.perf_counter() - START})
    serve(arguments.mode, arguments.threads, reply)


if __name__ == '__main__':
    main()
