"""Training and inference of the benchmarks' networks in PyTorch: a step, an epoch, a process up to its first step."""
import os
import subprocess
import sys
import tempfile

import torch

import peer_device
from peer_device import peak_of, wait
from peer_files import difference
from peer_networks import TRAINING

# As in peer_torch.py. A step moves each weight by up to the learning rate in the gradient's direction, however small
# the gradient is (Adam), so the loss after it may differ more.
TOLERANCE_OF = {'output': 1e-3, 'loss': 1e-4, 'loss_after_a_step': 5e-3, 'loss_after_a_replay': 5e-3}
# Under autocast in bf16, which keeps 8 bits of what 24 are in f32; 50 times as much.
TOLERANCE_OF_AUTOCAST = 50
# What is appended to a network's name.
ENDINGS = ('/replayed', '/inference', '/autocast')


def compile_afresh(net):
    """Compiles for this shape only: without the reset a second shape would compile code for any shape."""
    torch._dynamo.reset()
    return torch.compile(net, dynamic=False)


class Training:
    """A training step on one batch. `replayed`: on a GPU later steps replay a CUDA graph; on a CPU it has no effect.
    `autocasts`: forward pass and loss under autocast in bf16."""

    def __init__(self, name, tensors, compiled, replayed=False, autocasts=False):
        make, optimizer, self.loss, self.has_dropout = TRAINING[name]
        self.net = make().to(peer_device.DEVICE)
        if tensors:
            self.x, self.y = tensors['x'], tensors['y']
            state = {key[len('module.'):]: value for key, value in tensors.items() if key.startswith('module.')}
            self.net.load_state_dict(state)
            self.net.train(not self.has_dropout)
        self.autocasts = autocasts
        self.recorded = replayed and peer_device.DEVICE.type == 'cuda'
        self.optimizer = optimizer(self.net.parameters(), self.recorded)
        self.forward = compile_afresh(self.net) if compiled else self.net
        self.first, self.graph = None, None

    def step(self, x, y):
        x, y = x.to(peer_device.DEVICE, non_blocking=True), y.to(peer_device.DEVICE, non_blocking=True)
        self.optimizer.zero_grad()
        with torch.autocast(x.device.type, torch.bfloat16, self.autocasts):
            output = self.forward(x)
            loss = self.loss(output, y)
        loss.backward()
        self.optimizer.step()
        return output, loss

    def record(self):
        """As in PyTorch's manual: a few steps on another stream, then one captured,
        whose gradients belong to the graph."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step(self.x, self.y)
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step(self.x, self.y)
        self.graph = graph

    def run(self):
        if self.first is None or not self.recorded:
            output, loss = self.step(self.x, self.y)
            if self.first is None:
                self.first = {'output': output.detach(), 'loss': loss.detach()}
            return
        if self.graph is None:
            self.record()
        self.graph.replay()

    def present_loss(self):
        # Not the compiled network: compiling it again without gradients would take minutes.
        with torch.no_grad(), torch.autocast(self.x.device.type, torch.bfloat16, self.autocasts):
            return self.loss(self.net(self.x), self.y)

    def memory(self):
        state = [t for values in self.optimizer.state.values() for t in values.values() if torch.is_tensor(t)]
        gradients = [p.grad for p in self.net.parameters() if p.grad is not None]
        return peak_of(lambda: self.step(self.x, self.y),
                       [self.x, self.y, *self.net.parameters(), *self.net.buffers(), *gradients, *state])

    def check(self, theirs):
        """Koine's second step, if there is one, is a replay: compared with an eager step."""
        mine, self.first = self.first, False
        mine['loss_after_a_step'] = self.present_loss()
        self.net.train()
        if 'loss_after_a_replay' in theirs:
            self.step(self.x, self.y)
            mine['loss_after_a_replay'] = self.present_loss()
        mine = {name: t.cpu() for name, t in mine.items()}
        allowed = {name: value * (TOLERANCE_OF_AUTOCAST if self.autocasts else 1)
                   for name, value in TOLERANCE_OF.items()}
        found = [(difference(t, mine[name]) / allowed[name], name, difference(t, mine[name]))
                 for name, t in theirs.items()]
        worst = max(found)
        return {'difference': worst[2], 'tolerance': allowed[worst[1]], 'what': worst[1]}


class Inference(Training):
    """The output for one batch, in evaluation mode without gradients."""

    def __init__(self, name, tensors, compiled):
        super().__init__(name, tensors, compiled)
        self.net.eval()

    def run(self):
        with torch.no_grad():
            output = self.forward(self.x)
        if self.first is None:
            self.first = {'output': output}

    def memory(self):
        return peak_of(self.run, [self.x, self.y, *self.net.parameters(), *self.net.buffers()])

    def check(self, theirs):
        mine, self.first = self.first['output'].cpu(), False
        return {'difference': difference(theirs['output'], mine), 'tolerance': TOLERANCE_OF['output'], 'what': 'output'}


class Epoch:
    """An epoch of Fashion-MNIST. The images are already decoded: the loader shuffles and collates, with two workers."""

    FOLDER = '/usr/share/datasets/fashion-mnist'

    def __init__(self, compiled):
        import gzip

        with gzip.open(self.FOLDER + '/train-images-idx3-ubyte.gz') as file:
            images = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)[16:].view(-1, 1, 28, 28)
        with gzip.open(self.FOLDER + '/train-labels-idx1-ubyte.gz') as file:
            labels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)[8:].long()

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(images)

            def __getitem__(self, index):
                return images[index].float() / 255, labels[index]

        self.loader = torch.utils.data.DataLoader(Images(), batch_size=128, shuffle=True, num_workers=2,
                                                  pin_memory=peer_device.DEVICE.type == 'cuda')
        self.training = Training('cnn_step', None, compiled)

    def run(self):
        for x, y in self.loader:
            self.training.step(x, y)


class Start:
    """A process that imports PyTorch, builds the examples' network and makes one step;
    cold: with an empty code cache."""

    def __init__(self, cold, mode, threads):
        self.folder = tempfile.TemporaryDirectory(prefix='koine-peer-')
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peer_torch.py')
        self.command = [sys.executable, program, '--first-step', '--mode', mode,
                        '--threads', str(threads), '--device', str(peer_device.DEVICE)]
        self.cold, self.count = cold, 0
        if not cold:
            self.run()

    def run(self):
        if self.cold:
            self.count += 1
        cache = os.path.join(self.folder.name, str(self.count))
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache)
        subprocess.run(self.command, check=True, env=environment, stdout=subprocess.DEVNULL)


def network_of(name):
    """gpu/resnet18/replayed is the network resnet18; gpu/gpt is its own."""
    for ending in ENDINGS:
        name = name[:-len(ending)] if name.endswith(ending) else name
    return name[len('gpu/'):] if name.startswith('gpu/') and name not in TRAINING else name


def first_step(mode):
    training = Training('cnn_step', None, mode == 'compile')
    training.step(torch.rand(128, 1, 28, 28), torch.randint(0, 10, (128,)))
    wait()
