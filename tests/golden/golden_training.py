"""Golden trajectories of optimizers, and the statistics of PyTorch's default initialisation."""
import os

import numpy as np
import torch

from golden_file import exact, save_safetensors, text

STEPS = 20

class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group['betas']
            for p in group['params']:
                if p.grad is None:
                    continue
                g = -p.grad if group['maximize'] else p.grad
                m = self.state[p].setdefault('exp_avg', torch.zeros_like(p))
                p.mul_(1 - group['lr'] * group['weight_decay'])
                p.sub_(group['lr'] * torch.sign(beta1 * m + (1 - beta1) * g))
                m.mul_(beta2).add_(g, alpha=1 - beta2)


class LAMB(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(x) = x."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, bias_correction=True,
                 maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      bias_correction=bias_correction, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group['betas']
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                g = -p.grad if group['maximize'] else p.grad
                step = state['step'] = state.get('step', 0) + 1
                m = state.setdefault('exp_avg', torch.zeros_like(p))
                v = state.setdefault('exp_avg_sq', torch.zeros_like(p))
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                c1, c2 = (1 - beta1 ** step, 1 - beta2 ** step) if group['bias_correction'] else (1, 1)
                u = (m / c1) / ((v / c2).sqrt() + group['eps']) + group['weight_decay'] * p
                pn, un = p.norm(), u.norm()
                p.sub_(group['lr'] * (pn / un if pn > 0 and un > 0 else 1) * u)


OPTIM = torch.optim
OPTIMIZERS = {
    'sgd': (OPTIM.SGD, dict(lr=0.1)),
    'sgd_weight_decay': (OPTIM.SGD, dict(lr=0.1, weight_decay=0.05)),
    'sgd_momentum': (OPTIM.SGD, dict(lr=0.05, momentum=0.9)),
    'sgd_dampening': (OPTIM.SGD, dict(lr=0.05, momentum=0.9, dampening=0.5)),
    'sgd_nesterov': (OPTIM.SGD, dict(lr=0.05, momentum=0.8, nesterov=True)),
    'sgd_nesterov_weight_decay': (OPTIM.SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)),
    'sgd_maximize': (OPTIM.SGD, dict(lr=0.05, momentum=0.8, weight_decay=0.1, maximize=True)),
    'adam': (OPTIM.Adam, dict(lr=0.1)),
    'adam_betas': (OPTIM.Adam, dict(lr=0.05, betas=(0.5, 0.8), eps=1e-3)),
    'adam_weight_decay': (OPTIM.Adam, dict(lr=0.1, weight_decay=0.1)),
    'adam_amsgrad': (OPTIM.Adam, dict(lr=0.1, amsgrad=True)),
    'adam_decoupled': (OPTIM.Adam, dict(lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)),
    'adamw': (OPTIM.AdamW, dict(lr=0.05)),
    'adamw_weight_decay': (OPTIM.AdamW, dict(lr=0.05, weight_decay=0.3, amsgrad=True)),
    'adamw_maximize': (OPTIM.AdamW, dict(lr=0.05, weight_decay=0.3, maximize=True)),
    'rmsprop': (OPTIM.RMSprop, dict()),
    'rmsprop_momentum': (OPTIM.RMSprop, dict(lr=0.02, alpha=0.8, momentum=0.7, weight_decay=0.1)),
    'rmsprop_centered': (OPTIM.RMSprop, dict(lr=0.02, alpha=0.9, centered=True)),
    'rmsprop_all': (OPTIM.RMSprop, dict(lr=0.02, eps=1e-3, centered=True, momentum=0.5, weight_decay=0.2, maximize=True)),
    'adagrad': (OPTIM.Adagrad, dict()),
    'adagrad_all': (OPTIM.Adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, eps=1e-4)),
    'adagrad_maximize': (OPTIM.Adagrad, dict(lr=0.1, maximize=True)),
    'adadelta': (OPTIM.Adadelta, dict()),
    'adadelta_all': (OPTIM.Adadelta, dict(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1, maximize=True)),
    'nadam': (OPTIM.NAdam, dict(lr=0.05)),
    'nadam_all': (OPTIM.NAdam, dict(lr=0.05, betas=(0.7, 0.9), weight_decay=0.1, momentum_decay=0.1)),
    'nadam_decoupled': (OPTIM.NAdam, dict(lr=0.05, weight_decay=0.2, decoupled_weight_decay=True, maximize=True)),
    'radam': (OPTIM.RAdam, dict(lr=0.05)),
    'radam_all': (OPTIM.RAdam, dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1, eps=1e-3)),
    'radam_decoupled': (OPTIM.RAdam, dict(lr=0.05, weight_decay=0.2, decoupled_weight_decay=True, maximize=True)),
    'adamax': (OPTIM.Adamax, dict(lr=0.05)),
    'adamax_all': (OPTIM.Adamax, dict(lr=0.05, betas=(0.7, 0.8), eps=1e-3, weight_decay=0.1, maximize=True)),
    'asgd': (OPTIM.ASGD, dict()),
    'asgd_averaging': (OPTIM.ASGD, dict(lr=0.1, lambd=0.05, alpha=0.6, t0=4, weight_decay=0.1)),
    'asgd_maximize': (OPTIM.ASGD, dict(lr=0.1, t0=0, maximize=True)),
    'rprop': (OPTIM.Rprop, dict()),
    'rprop_all': (OPTIM.Rprop, dict(lr=0.05, etas=(0.4, 1.5), step_sizes=(0.01, 0.08), maximize=True)),
    'adafactor': (OPTIM.Adafactor, dict()),
    'adafactor_all': (OPTIM.Adafactor, dict(lr=0.3, beta2_decay=-0.5, eps=(1e-4, 0.02), d=1.2, weight_decay=0.1,
                                            maximize=True)),
    'muon': (OPTIM.Muon, dict(lr=0.02)),
    'muon_all': (OPTIM.Muon, dict(lr=0.02, weight_decay=0.3, momentum=0.7, nesterov=False,
                                  ns_coefficients=(3.0, -3.2, 1.2), eps=1e-3, ns_steps=4,
                                  adjust_lr_fn='match_rms_adamw')),
    'muon_spectral': (OPTIM.Muon, dict(lr=0.02, adjust_lr_fn='spectral_unclamped')),
    'lamb': (LAMB, dict(lr=0.02)),
    'lamb_all': (LAMB, dict(lr=0.02, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.1, bias_correction=False)),
    'lion': (Lion, dict(lr=0.01)),
    'lion_all': (Lion, dict(lr=0.01, betas=(0.7, 0.8), weight_decay=0.3, maximize=True)),
}
CHOICES = {None: 0, 'original': 1, 'match_rms_adamw': 2, 'spectral_unclamped': 3}
PAIRS = {'betas': ('beta1', 'beta2'), 'eps': ('eps1', 'eps2'), 'ns_coefficients': ('ns_a', 'ns_b', 'ns_c'),
         'etas': ('etaminus', 'etaplus'), 'step_sizes': ('step_size_min', 'step_size_max')}
# Muon takes matrices only, and rounds to bfloat16, of which the last bits depend on the order of sums.
EXTRAS = {OPTIM.Muon: ('matrices=1', 'tolerance=0.002')}


def optimizers(folder):
    """Two parameters p and q under given gradients; q has none in step 3 and is not updated there. All values float64.
    With "matrices" q is a column."""
    random = np.random.RandomState(21)
    p0, q0 = exact(random.uniform(-1, 1, (3, 5))), exact(random.uniform(-1, 1, (7,)))
    # Gradients that shrink stepwise, so that amsgrad's maximum matters.
    gp = [exact(random.uniform(-1, 1, (3, 5)) / (1 + 3 * (t % 4))) for t in range(STEPS)]
    gq = [exact(random.uniform(-1, 1, (7,)) / (1 + 3 * (t % 4))) for t in range(STEPS)]
    tensors = {'p': p0, 'q': q0, 'grad_p': torch.stack(gp), 'grad_q': torch.stack(gq)}
    metadata = {'torch': torch.__version__, 'cases': ' '.join(OPTIMIZERS), 'steps': str(STEPS),
                'step_without_grad_q': '3'}
    torch.set_default_dtype(torch.float64)  # so that the numbers that NAdam and ASGD carry are float64 too
    for name, (kind, params) in OPTIMIZERS.items():
        p, q = p0.clone().requires_grad_(), q0.clone().requires_grad_()
        if kind in EXTRAS:
            q = q0.reshape(7, 1).clone().requires_grad_()
        optimizer = kind([p, q], **params)
        path_p, path_q = [], []
        for t in range(STEPS):
            p.grad, q.grad = gp[t].clone(), None if t == 3 else gq[t].clone().reshape(q.shape)
            optimizer.step()
            path_p.append(p.detach().clone())
            path_q.append(q.detach().flatten().clone())
        tensors[name + '/p'], tensors[name + '/q'] = torch.stack(path_p), torch.stack(path_q)
        flat = {}
        for key, value in params.items():
            is_list = isinstance(value, tuple)
            flat.update(zip(PAIRS[key], value) if is_list else [(key, CHOICES.get(value, value))])
        metadata[name] = ' '.join(['op=' + kind.__name__] + ['%s=%s' % (k, text(v)) for k, v in flat.items()])
        metadata[name + '/extras'] = ' '.join(EXTRAS.get(kind, ()))
    torch.set_default_dtype(torch.float32)
    save_safetensors(os.path.join(folder, 'optimizers.safetensors'), tensors, metadata)


def by_lambda(epoch):
    return 1 / (1 + 0.1 * epoch)


LR = torch.optim.lr_scheduler
SCHEDULES = {
    'lambda': lambda o: LR.LambdaLR(o, [by_lambda, lambda epoch: 0.95 ** epoch]),
    'multiplicative': lambda o: LR.MultiplicativeLR(o, lambda epoch: 0.9 if epoch % 3 == 0 else 1.0),
    'step': lambda o: LR.StepLR(o, 7),
    'step_gamma': lambda o: LR.StepLR(o, 30, gamma=0.5),
    'multi_step': lambda o: LR.MultiStepLR(o, [3, 50, 50, 120], gamma=0.3),
    'constant': lambda o: LR.ConstantLR(o),
    'constant_factor': lambda o: LR.ConstantLR(o, factor=0.7, total_iters=40),
    'linear': lambda o: LR.LinearLR(o),
    'linear_down': lambda o: LR.LinearLR(o, start_factor=0.9, end_factor=0.1, total_iters=150),
    'exponential': lambda o: LR.ExponentialLR(o, 0.97),
    'polynomial': lambda o: LR.PolynomialLR(o, total_iters=100, power=2.0),
    'polynomial_default': lambda o: LR.PolynomialLR(o),
    'cosine': lambda o: LR.CosineAnnealingLR(o, 30, eta_min=0.001),
    'cosine_once': lambda o: LR.CosineAnnealingLR(o, 200),
    'restarts': lambda o: LR.CosineAnnealingWarmRestarts(o, 11, T_mult=2, eta_min=0.01),
    'restarts_equal': lambda o: LR.CosineAnnealingWarmRestarts(o, 40),
    'cyclic': lambda o: LR.CyclicLR(o, 0.01, 0.2, step_size_up=20),
    'cyclic_triangular2': lambda o: LR.CyclicLR(o, [0.01, 0.02], [0.2, 0.3], step_size_up=15, step_size_down=25,
                                                mode='triangular2', base_momentum=0.6, max_momentum=0.95),
    'cyclic_exp_range': lambda o: LR.CyclicLR(o, 0.01, 0.2, step_size_up=10, mode='exp_range', gamma=0.99,
                                              cycle_momentum=False),
    'one_cycle': lambda o: LR.OneCycleLR(o, 0.3, total_steps=200),
    'one_cycle_linear': lambda o: LR.OneCycleLR(o, [0.3, 0.6], total_steps=201, anneal_strategy='linear', pct_start=0.2),
    'one_cycle_three_phase': lambda o: LR.OneCycleLR(o, 0.3, total_steps=210, three_phase=True, div_factor=10.0,
                                                     final_div_factor=100.0, base_momentum=0.7, max_momentum=0.9),
    'plateau': lambda o: LR.ReduceLROnPlateau(o, patience=3),
    'plateau_max': lambda o: LR.ReduceLROnPlateau(o, mode='max', factor=0.5, patience=2, threshold=0.01, cooldown=4,
                                                  threshold_mode='abs', min_lr=[0.01, 0.002]),
    'sequential': lambda o: LR.SequentialLR(o, [LR.LinearLR(o, total_iters=10), LR.CosineAnnealingLR(o, 100),
                                                LR.ExponentialLR(o, 0.9)], [10, 110]),
    'sequential_restarts': lambda o: LR.SequentialLR(o, [LR.ConstantLR(o, factor=0.1, total_iters=20),
                                                         LR.CosineAnnealingWarmRestarts(o, 30, T_mult=2)], [20]),
    'sequential_cyclic': lambda o: LR.SequentialLR(o, [LR.LinearLR(o, total_iters=10),
                                                       LR.CyclicLR(o, 0.01, 0.2, step_size_up=20)], [10]),
    'chained': lambda o: LR.ChainedScheduler([LR.ConstantLR(o, factor=0.1, total_iters=20), LR.ExponentialLR(o, 0.97)]),
}


def metric(step):
    """What the plateau schedules watch: falls, with plateaus and bumps."""
    return 1 / (1 + 0.05 * (step // 9)) + (0.02 if step % 7 == 0 else 0)


def schedules(folder):
    """The learning rates and momenta of two groups, at first and after each of 200 steps."""
    tensors, steps = {'metric': torch.tensor([metric(i) for i in range(200)], dtype=torch.float64)}, 200
    for name, make in SCHEDULES.items():
        p, q = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
        o = torch.optim.SGD([{'params': [p], 'lr': 0.5}, {'params': [q], 'lr': 0.1}], lr=1, momentum=0.9)
        schedule, path = make(o), []
        for i in range(steps + 1):
            path.append([g[key] for g in o.param_groups for key in ('lr', 'momentum')])
            o.step()
            if i < steps:
                schedule.step(metric(i)) if name.startswith('plateau') else schedule.step()
        tensors[name] = torch.tensor(path, dtype=torch.float64)
    save_safetensors(os.path.join(folder, 'schedules.safetensors'), tensors, {'torch': torch.__version__})


def initialisation(folder):
    """Each layer's weight and bias: mean, standard deviation and largest magnitude over many draws, in this order."""
    layers = {
        'linear_64_32': lambda: torch.nn.Linear(64, 32),
        'linear_3_500': lambda: torch.nn.Linear(3, 500),
        'conv2d_1_32_3': lambda: torch.nn.Conv2d(1, 32, 3),
        'conv2d_32_64_5': lambda: torch.nn.Conv2d(32, 64, 5),
        'conv2d_8_16_3_groups_4': lambda: torch.nn.Conv2d(8, 16, 3, groups=4),
        'conv2d_4_6_2x5': lambda: torch.nn.Conv2d(4, 6, (2, 5)),
    }
    torch.manual_seed(0)
    tensors = {}
    for name, make_layer in layers.items():
        drawn = {'weight': [], 'bias': []}
        count = 0
        while count < 200000:
            layer = make_layer()
            drawn['weight'].append(layer.weight.detach().double().flatten())
            drawn['bias'].append(layer.bias.detach().double().flatten())
            count += layer.weight.numel()
        for which, values in drawn.items():
            values = torch.cat(values)
            tensors['%s/%s' % (name, which)] = torch.stack([values.mean(), values.std(), values.abs().max()])
    save_safetensors(os.path.join(folder, 'initialisation.safetensors'), tensors,
                     {'torch': torch.__version__, 'cases': ' '.join(layers)})


def make(folder):
    optimizers(folder)
    schedules(folder)
    initialisation(folder)
