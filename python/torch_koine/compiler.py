"""torch.compile(model, backend='koine'): the graphs of forward and backward passes are recorded and replayed.

The first call of a graph runs its operators one by one, the second records them (recording.cpp), the further ones
replay. Sizes that change are recorded for each combination, up to a limit. What cannot be recorded, because it has
tensors elsewhere, reads a value or runs on the CPU, runs its operators one by one, always; so does a call whose
parameters have moved. The module is found by its entry point, since importing it takes PyTorch's compiler with it.
"""
import collections
import logging
import operator

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.utils._python_dispatch import _disable_current_modes

from .graphs import capture_lock, capture_stream

_SIZES = 8  # combinations of sizes that a graph is recorded for
_ATTEMPTS = 8  # recordings of one of them, while its parameters move
_MOVES = 2  # so often may an input move before it is copied

log = logging.getLogger(__name__)
counters = collections.Counter()  # 'recorded', 'replayed', 'run': calls of graphs


def backend(gm, example_inputs, **options):
    owned = []

    def partition(joint, inputs, *, num_fwd_outputs, **others):
        owned.append(num_fwd_outputs)
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **others)

    def forward(gm, inputs):
        return _boxed(_Function(gm, owned[-1]))

    def backward(gm, inputs):
        return _boxed(_Function(gm, 0))

    def inference(gm, inputs):
        return _boxed(_Function(gm, None))

    return aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=inference,
                        partition_fn=partition, keep_inference_input_mutations=True)(gm, example_inputs)


def _boxed(function):
    """For AOTAutograd: takes a list of inputs, which it empties."""
    def call(inputs):
        return function(inputs)
    call._boxed_call = True
    return call


# --- what can be recorded ---------------------------------------------------------------------------------------------


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _obstacle(gm):
    """Why a graph cannot be recorded; None: as far as can be seen, it can."""
    devices = set()
    for node in gm.graph.nodes:
        value = getattr(gm, node.target) if node.op == 'get_attr' else node.meta.get('val')
        devices.update(tensor.device for tensor in _tensors(value))
        if node.target in (torch.ops.aten.set_.source_Tensor, torch.ops.aten.resize_.default):
            return 'it changes the memory of a tensor'
    devices.discard(torch.device('meta'))  # PyTorch does not know where; record() looks
    if len(devices) != 1 or next(iter(devices)).type != 'koine':
        return 'it has tensors on %s' % (', '.join(sorted(map(str, devices))) or 'no device')
    return None


def _targets(gm):
    """The nodes that a graph writes to."""
    for node in gm.graph.nodes:
        schema = getattr(node.target, '_schema', None)
        for argument, value in zip(schema.arguments if schema else (), node.args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield value


def _written(gm):
    """For each placeholder: does the graph write to it?"""
    targets = list(_targets(gm))
    return [node in targets for node in gm.graph.nodes if node.op == 'placeholder']


# --- graphs that are changed before they run --------------------------------------------------------------------------

_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


def _owner(node):
    """The node whose memory this one's value may share: the origin of a view."""
    while isinstance(node, torch.fx.Node) and node.op == 'call_function' and node.args:
        schema = getattr(node.target, '_schema', None)
        if node.target is not operator.getitem and not (schema and any(one.alias_info for one in schema.returns)):
            break
        node = node.args[0]
    return node


def _reshape(gm):
    """Makes reshapes of views, since a result may lie in memory otherwise than PyTorch's shape functions predicted.
    Only where the memory is not written to is a copy as good as a view."""
    owners = [_owner(target) for target in _targets(gm)]
    for node in gm.graph.nodes:
        if node.target in _VIEWS and _owner(node) not in owners:
            node.target = torch.ops.aten.reshape.default


_FROM_NUMBERS = (torch.ops.aten.arange.default, torch.ops.aten.arange.start, torch.ops.aten.arange.start_step)


def _is_only_read(user, node, owned):
    """By a user that makes no view of it, or keeps it for the backward pass."""
    if user.op == 'output':
        return node not in user.args[0][:owned]
    return hasattr(user.target, '_schema') and not any(one.alias_info for one in user.target._schema.returns)


def _compute_constants(gm, owned):
    """Puts tensors made of numbers alone, whose values come from the host, before the recording, if nobody can write
    to them."""
    for number, node in enumerate(list(gm.graph.nodes)):
        if node.target not in _FROM_NUMBERS or node.all_input_nodes or node.kwargs.get('device') is None:
            continue
        if not all(_is_only_read(user, node, owned) for user in node.users):
            continue
        with _disable_current_modes():
            gm.register_buffer('_constant_%d' % number, node.target(*node.args, **node.kwargs))
        with gm.graph.inserting_before(node):
            constant = gm.graph.get_attr('_constant_%d' % number)
        node.replace_all_uses_with(constant)
        gm.graph.erase_node(node)


# --- compiled graphs --------------------------------------------------------------------------------------------------


class _Function:
    """A graph of tensors, and of integers where sizes change. The first `owned` results (None: all) are the caller's,
    the others PyTorch's own: saved tensors and gradients."""

    def __init__(self, gm, owned):
        self.owned = 2**31 if owned is None else owned
        _compute_constants(gm, self.owned)
        _reshape(gm)
        gm.graph.set_codegen(torch.fx.graph._BoxedCodeGen())
        gm.recompile()
        self.run = gm.forward
        self.obstacle = _obstacle(gm)
        if self.obstacle:
            log.info('a graph is not recorded: %s', self.obstacle)
        self.written = _written(gm)
        self.has_numbers = any(node.op == 'placeholder' and not isinstance(node.meta.get('val'), torch.Tensor)
                               for node in gm.graph.nodes)
        self.by_sizes = {}

    def __call__(self, inputs):
        if self.obstacle:
            return self.run_operators(inputs)
        numbers, tensors = (), inputs
        if self.has_numbers:
            numbers = tuple(one for one in inputs if not isinstance(one, torch.Tensor))
            tensors = [one for one in inputs if isinstance(one, torch.Tensor)]
        one = self.by_sizes.get(numbers)
        if one is None:
            if len(self.by_sizes) == _SIZES:
                return self.run_operators(inputs)
            one = self.by_sizes[numbers] = _OfSizes(self, inputs)
        return one(inputs, tensors)

    def run_operators(self, inputs):
        counters['run'] += 1
        return self.run(inputs)


class _OfSizes:
    """The recording of a graph for one combination of sizes."""

    def __init__(self, function, inputs):
        self.function = function
        self.written = [is_written for is_written, one in zip(function.written, inputs)
                        if isinstance(one, torch.Tensor)]
        self.moves = [0] * len(self.written)
        self.is_recorded, self.attempts, self.recording = False, 0, None

    def __call__(self, inputs, tensors):
        if self.is_recorded:
            results = self.recording.run(tensors)
            if results is not None:
                inputs.clear()
                return self.with_numbers(results)
            self.forget(tensors)
        elif self.recording is not None and self.record(inputs, tensors):
            return self(inputs, tensors)
        self.recording = None
        if self.attempts < _ATTEMPTS:
            self.recording = torch.classes.koine.Recording()
            self.recording.note(tensors)
        return self.function.run_operators(inputs)

    def with_numbers(self, results):
        counters['replayed'] += 1
        for place, number in self.numbers:
            results[place] = number
        return results

    def forget(self, tensors):
        """The parameters are elsewhere, or their memory was freed."""
        for place in self.recording.moved(tensors):
            self.moves[place] += 1
        self.is_recorded = False

    def record(self, inputs, tensors):
        """False: it could not. A capture runs nothing, so what fails in it has had no effect."""
        self.attempts += 1
        if not all(tensor.is_koine for tensor in tensors):
            return False
        in_place = [is_written or (stays and moves < _MOVES)
                    for is_written, stays, moves in zip(self.written, self.recording.stay(tensors), self.moves)]
        try:
            with torch.no_grad():
                values = self.capture(inputs, self.recording.prepare(tensors, in_place, self.written))
        except Exception as error:  # whatever it is, running the operators raises it again
            log.info('a graph is not recorded: %s', error)
            self.attempts = _ATTEMPTS
            return False
        self.numbers = [(place, value) for place, value in enumerate(values)
                        if value is not None and not isinstance(value, torch.Tensor)]
        self.is_recorded = True
        counters['recorded'] += 1
        return True

    def capture(self, inputs, used):
        places = iter(used)
        arguments = [next(places) if isinstance(one, torch.Tensor) else one for one in inputs]
        with capture_lock, torch.koine.stream(capture_stream()):
            self.recording.begin()
            try:
                values = self.function.run(arguments)
            except BaseException:
                self.recording.abort()
                raise
            self.recording.end([value if isinstance(value, torch.Tensor) else None for value in values],
                               self.function.owned, used)
        return values
