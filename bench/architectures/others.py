"""Networks for vectors, points, graphs and functions."""
import numpy as np

from .samples import Samples, of_output


def networks(t):
    nn, F = t.nn, t.nn.functional

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(784, 400)
            self.mean, self.variance = nn.Linear(400, 20), nn.Linear(400, 20)
            self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

        def forward(self, x, noise):
            hidden = F.relu(self.encoder(x))
            mean, log_variance = self.mean(hidden), self.variance(hidden)
            y = self.decoder(mean + noise * t.exp(0.5 * log_variance))
            return (F.binary_cross_entropy(y, x, reduction='sum')
                    - 0.5 * t.sum(1 + log_variance - mean.pow(2) - log_variance.exp()))

    class PointNet(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for inputs, outputs in ((3, 64), (64, 128), (128, 512)):
                layers += [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()]
            self.points = nn.Sequential(*layers)
            self.classes = nn.Sequential(nn.Linear(512, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))

        def forward(self, x):
            return self.classes(self.points(x).max(2)[0])

    class Graph(nn.Module):
        """Each node adds the mean of its neighbours."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 7)])

        def forward(self, x, source, target, degrees):
            for i, layer in enumerate(self.layers):
                x = layer(F.relu(x) if i > 0 else x)
                x = x + t.zeros_like(x).index_add(0, target, x[source]) / degrees[:, None].to(x.dtype)
            return x

    def field():
        """Of a partial differential equation."""
        return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    return VAE, PointNet, Graph, field


def architectures(t):
    s, classes = Samples(), of_output(t.nn.functional.cross_entropy)
    nodes, edges = 2000, 10000
    source, target = s.classes(nodes, edges), s.classes(nodes, edges)
    degrees = np.maximum(np.bincount(target, minlength=nodes), 1).astype('float32')
    vae, points, graph, field = networks(t)

    def own(module, inputs, target):
        return module(*inputs)

    def burgers(module, inputs, target):
        """Burgers' equation at points (x, time), and the values there."""
        at = inputs[0].detach().requires_grad_(True)
        u = module(at)
        du = t.autograd.grad(u.sum(), at, create_graph=True)[0]
        second = t.autograd.grad(du[:, 0].sum(), at, create_graph=True)[0][:, 0]
        residual = du[:, 1] + u[:, 0] * du[:, 0] - 0.01 * second
        return (residual ** 2).mean() + ((u[:, 0] - target) ** 2).mean()

    return {
        'vae': (vae, own, [s.uniform(128, 784), s.normal(128, 20)], s.classes(10, 16)),
        'pointnet': (points, classes, [s.normal(16, 3, 512)], s.classes(10, 16)),
        'graph': (graph, classes, [s.normal(nodes, 64), source, target, degrees], s.classes(7, nodes)),
        'pinn': (field, burgers, [s.normal(2000, 2)], s.normal(2000)),
    }
