"""States and groups of optimizers, and the state of the gradient scaler."""
import math

import numpy
import pytest

import koine
from koine import nn, optim


def trained(kind='AdamW', **options):
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = getattr(optim, kind)(net.parameters(), **options)
    net[0](koine.ones(4, 2)).sum().backward()
    optimizer.step()
    return net, optimizer


def test_states_of_parameters():
    net, optimizer = trained()
    state = optimizer.state
    assert len(state) == 2 and [one.shape for one in state] == [(3, 2), (3,)]
    assert sorted(state[net[0].weight]) == ['exp_avg', 'exp_avg_sq', 'step']
    assert state[net[0].weight]['step'].item() == 1
    assert state[net[0].bias]['exp_avg'].tolist() == pytest.approx([0.4] * 3)
    assert net[0].bias in state and net[1].bias not in state and state[net[1].bias] == {}
    assert [sorted(one) for one in state.values()] == [sorted(state[net[0].weight])] * 2
    for wrong in (koine.ones(1), 'weight'):
        with pytest.raises(KeyError, match='no such parameter'):
            state[wrong]
    assert len(optim.SGD(net.parameters(), lr=1).state) == 0
    _, optimizer = trained('SGD', lr=0.1, momentum=0.9)
    assert [list(one) for one in optimizer.state.values()] == [['momentum_buffer']] * 2


def test_groups_are_mappings():
    net = nn.Linear(2, 2)
    optimizer = optim.AdamW([{'params': net.weight}], lr=0.5, amsgrad=True)
    assert optimizer.add_param_group({'params': [net.bias], 'lr': 0.25}) is None
    first, second = optimizer.param_groups
    assert list(first)[:4] == ['params', 'lr', 'betas', 'eps'] and 'lr' in first and 'rho' not in first
    assert second['lr'] == 0.25 and second.get('momentum', 3) == 3 and first['amsgrad'] is True
    assert first['betas'] == (0.9, 0.999) and dict(second)['weight_decay'] == 0.01 and len(second['params']) == 1
    assert optimizer.defaults['lr'] == 0.5 and 'initial_lr' not in first
    optim.lr_scheduler.StepLR(optimizer, 1)
    assert second['initial_lr'] == 0.25
    second['betas'] = 0.5, 0.75
    assert second['betas'] == (0.5, 0.75) and first['betas'] == (0.9, 0.999)
    factors = optim.Adafactor(net.parameters()).param_groups[0]
    assert factors['eps'] == (None, 0.001) and len(factors) == len(dict(factors)) == 7
    searching = optim.LBFGS(net.parameters(), line_search_fn='strong_wolfe')
    assert dict(searching.param_groups[0])['line_search_fn'] == 'strong_wolfe'
    with pytest.raises(KeyError, match='has no hyperparameter "rho"'):
        first['rho']
    with pytest.raises(TypeError, match='tensors or dicts with "params", not int'):
        optimizer.add_param_group({'params': [1]})


def test_values_of_a_group_that_need_each_other():
    def parameters(**options):
        return [{'params': [nn.Parameter(koine.ones(2, 2))], **options}]

    group = optim.SGD(parameters(momentum=0.5, nesterov=True, dampening=0), dampening=0.25).param_groups[0]
    assert group['nesterov'] and group['momentum'] == 0.5 and group['dampening'] == 0
    group = optim.Rprop(parameters()).param_groups[0]
    group['step_sizes'] = 100, 200
    assert group['step_sizes'] == (100, 200)
    group['step_sizes'] = 1, 2
    assert group['step_sizes'] == (1, 2)
    group = optim.Adafactor(parameters(eps=(None, 1e-2)), eps=(1e-5, 1e-3)).param_groups[0]
    assert group['eps'] == (None, 1e-2)
    group['eps'] = 1e-4, 1e-2
    assert group['eps'] == (1e-4, 1e-2)
    with pytest.raises(koine.KoineError, match=r'lr \(-1\)'):
        optim.SGD(parameters(lr=-1, momentum=0.5))


@pytest.mark.parametrize('name', optim.SIGNATURES)
def test_groups_have_the_defaults(name):
    optimizer = getattr(optim, name)([nn.Parameter(koine.ones(2, 2))])
    defaults = {key: value for key, value in optimizer.defaults.items() if key not in ('master_weights', 'max_eval')}
    found = dict(optimizer.param_groups[0])
    assert {key: found[key] for key in defaults} == defaults


def test_gradients_of_zeros():
    net, optimizer = trained()
    gradient = net[0].weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert gradient.tolist() == net[0].weight.grad.tolist() == [[0, 0]] * 3 and net[1].weight.grad is None
    optimizer.zero_grad()
    assert net[0].weight.grad is None


def test_closures():
    w = nn.Parameter(koine.tensor([3.0]))
    optimizer = optim.SGD([w], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with koine.no_grad():
        assert optimizer.step(closure).item() == 9
    assert w.item() == 1.5 and optimizer.step() is None and w.item() == 0


def test_state_of_a_scaler():
    scaler = koine.amp.GradScaler(init_scale=1024.0, growth_interval=3)
    w = nn.Parameter(koine.ones(2))
    optimizer = optim.SGD([w], lr=0.0)

    def step(scaler, factor):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    step(scaler, 1.0)
    state = scaler.state_dict()
    assert state == {'scale': 1024.0, 'growth_factor': 2.0, 'backoff_factor': 0.5, 'growth_interval': 3,
                     '_growth_tracker': 1}
    other = koine.amp.GradScaler()
    other.load_state_dict({**state, 'backoff_factor': 0.25})
    assert other.get_scale() == 1024 and other.state_dict() == {**state, 'backoff_factor': 0.25}
    step(other, 1.0)
    step(other, 1.0)
    assert other.get_scale() == 2048 and other.state_dict()['_growth_tracker'] == 0
    step(other, math.inf)
    assert other.get_scale() == 512
    off = koine.amp.GradScaler(enabled=False)
    off.load_state_dict(state)
    assert off.state_dict() == {} and off.get_scale() == 1
    with pytest.raises(KeyError, match='the state has no growth_factor'):
        scaler.load_state_dict({name: one for name, one in state.items() if name != 'growth_factor'})
    with pytest.raises(ValueError, match='growth_factor'):
        scaler.load_state_dict({**state, 'growth_factor': 0.5})
    assert scaler.state_dict() == state


@pytest.mark.parametrize('name, options, momenta, values', [
    ('OneCycleLR', {'max_lr': 0.1, 'total_steps': 6}, [0.85055846, 0.86882551, 0.90373650, 0.93665259, 0.95],
     [0.99199998, 0.62554628, 0.26409087, 0.05348209, -0.00486012]),
    ('CyclicLR', {'base_lr': 0.01, 'max_lr': 0.1, 'step_size_up': 2}, [0.85, 0.8, 0.85, 0.9, 0.85],
     [0.98, 0.77869999, 0.33015996, 0.08414989, 0.0422107])])
def test_momentum_that_only_a_schedule_has(name, options, momenta, values):
    """The numbers are PyTorch's."""
    p = nn.Parameter(koine.tensor([1.0, 2.0]))
    optimizer = optim.SGD([p], lr=0.1)
    schedule = getattr(optim.lr_scheduler, name)(optimizer, **options)
    for momentum, value in zip(momenta, values):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        schedule.step()
        assert optimizer.param_groups[0]['momentum'] == pytest.approx(momentum)
        assert p.tolist() == pytest.approx([value, 2 * value], rel=1e-5)
    with pytest.raises(RuntimeError, match='cannot become 0 after the first step'):
        optimizer.param_groups[0]['momentum'] = 0


def test_choices_of_kernels():
    """They have no effect, and are no hyperparameters."""
    p = nn.Parameter(koine.ones(1))
    optimizer = optim.Adam([('p', p)], foreach=True, fused=False, capturable=False, differentiable=False)
    assert 'foreach' not in optimizer.param_groups[0] and optimizer.param_groups[0]['params'][0].tolist() == [1]
    named = optim.SGD([{'params': nn.Linear(2, 1).named_parameters(), 'lr': 0.5}], lr=1, foreach=False)
    assert [one.shape for one in named.param_groups[0]['params']] == [(1, 2), (1,)]


def test_what_schedules_say():
    optimizer = optim.SGD([nn.Parameter(koine.ones(1))], lr=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=2, steps_per_epoch=3)
    assert schedule.optimizer is optimizer and schedule.base_lrs == pytest.approx([0.004])
    for _ in range(6):
        schedule.step()
    with pytest.raises(RuntimeError, match='step 7 of 6'):
        schedule.step()
    with pytest.raises(ValueError, match='total_steps is needed, or epochs and steps_per_epoch'):
        optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=2)
    assert optim.lr_scheduler.StepLR(optim.SGD([nn.Parameter(koine.ones(1))], lr=0.5), 2).base_lrs == [0.5]


class Heavy(optim.Optimizer):
    """SGD with momentum, in Python."""

    def __init__(self, params, lr=0.1, momentum=0.9):
        super().__init__(params, {'lr': lr, 'momentum': momentum})

    @koine.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    state = self.state[p]
                    state.setdefault('buffer', koine.zeros_like(p)).mul_(group['momentum']).add_(p.grad)
                    p.add_(state['buffer'], alpha=-group['lr'])


def test_optimizers_of_python():
    net, other = nn.Linear(3, 2), nn.Linear(3, 2)
    other.load_state_dict(net.state_dict())
    ours, library = Heavy(net.parameters(), lr=0.2), optim.SGD(other.parameters(), lr=0.2, momentum=0.9)
    assert isinstance(ours, optim.Optimizer) and isinstance(library, optim.Optimizer)
    for _ in range(3):
        for module, optimizer in ((net, ours), (other, library)):
            optimizer.zero_grad()
            (module(koine.ones(1, 3)) ** 2).sum().backward()
            optimizer.step()
    assert koine.allclose(net.weight, other.weight, atol=1e-6)
    saved = ours.state_dict()
    assert list(saved['state']) == [0, 1] and saved['param_groups'] == [{'lr': 0.2, 'momentum': 0.9, 'params': [0, 1]}]
    again = Heavy(net.parameters())
    again.load_state_dict(saved)
    assert again.param_groups[0]['lr'] == 0.2
    for p, former in zip(again.param_groups[0]['params'], ours.param_groups[0]['params']):
        assert koine.equal(again.state[p]['buffer'], ours.state[former]['buffer'])
        assert again.state[p]['buffer'] is not ours.state[former]['buffer']
    ours.zero_grad(set_to_none=False)
    assert net.bias.grad.tolist() == [0, 0]
    ours.zero_grad()
    assert net.bias.grad is None


def test_groups_of_optimizers_of_python():
    a, b, c = (nn.Parameter(koine.ones(1)) for _ in range(3))
    ours = Heavy([{'params': [a], 'lr': 0.5}, {'params': b}])
    ours.add_param_group({'params': [('c', c)], 'momentum': 0})
    assert [(one['lr'], one['momentum'], len(one['params'])) for one in ours.param_groups] == [
        (0.5, 0.9, 1), (0.1, 0.9, 1), (0.1, 0, 1)]
    with pytest.raises(ValueError, match='Heavy: a parameter is in several groups'):
        ours.add_param_group({'params': [a]})
    with pytest.raises(ValueError, match='Heavy: there are no parameters to optimize'):
        Heavy([])
    with pytest.raises(ValueError, match='the state has other groups of parameters'):
        Heavy([a]).load_state_dict(ours.state_dict())
    with pytest.raises(NotImplementedError, match='needs step'):
        optim.Optimizer([a], {}).step()
    for wrong in (lambda: optim.lr_scheduler.StepLR(ours, 2), lambda: koine.amp.GradScaler().step(ours)):
        with pytest.raises(TypeError, match="library"):
            wrong()


def test_options_by_name():
    weight = nn.Parameter(koine.ones(4, 2))
    optimizer = optim.Muon([weight], lr=0.5, weight_decay=0, momentum=0, nesterov=False, adjust_lr_fn='match_rms_adamw')
    group = optimizer.param_groups[0]
    assert group['adjust_lr_fn'] == 'match_rms_adamw' and dict(group)['adjust_lr_fn'] == 'match_rms_adamw'
    weight.grad = koine.ones(4, 2)
    optimizer.step()
    wide = nn.Parameter(koine.ones(4, 2))
    other = optim.Muon([wide], lr=0.5 * 0.2 * 2, weight_decay=0, momentum=0, nesterov=False, adjust_lr_fn='original')
    wide.grad = koine.ones(4, 2)
    group['adjust_lr_fn'] = None
    assert group['adjust_lr_fn'] is None
    other.step()  # 0.2 sqrt(4), and sqrt(4 / 2)
    numpy.testing.assert_allclose(1 - weight.detach().numpy(), (1 - wide.detach().numpy()) / 2 ** 0.5, rtol=1e-5)
    with pytest.raises(ValueError, match="adjust_lr_fn is 'other'; it may be None, 'original'"):
        optim.Muon([weight], adjust_lr_fn='other')
    searching = optim.LBFGS([weight], line_search_fn='strong_wolfe')
    searching.param_groups[0]['line_search_fn'] = None
    assert searching.param_groups[0]['line_search_fn'] is None


def test_lists_for_tuples():
    weight = nn.Parameter(koine.ones(2, 2))
    assert optim.Adam([weight], betas=[0.5, 0.25]).param_groups[0]['betas'] == (0.5, 0.25)
    group = optim.Adafactor([{'params': [weight], 'eps': [None, 0.5]}]).param_groups[0]
    assert group['eps'] == (None, 0.5)
    group['eps'] = [0.25, 0.5]
    assert group['eps'] == (0.25, 0.5)


def test_what_closures_return():
    def closure():
        weight.grad = weight.detach() * 2
        return result

    for kind in (optim.SGD, optim.LBFGS):
        for result in (koine.tensor(3.0), 3.0, 3) if kind is optim.LBFGS else (koine.tensor(3.0), 3.0, None, 'any'):
            weight = nn.Parameter(koine.ones(2))
            assert kind([weight], lr=0.25).step(closure) is result
            assert weight.tolist() != [1, 1]


def test_lbfgs_takes_a_state_from_before_its_first_move():
    weight = nn.Parameter(koine.ones(2))
    optimizer = optim.LBFGS([weight])
    state = optimizer.state_dict()
    state['state'] = {0: {'func_evals': koine.tensor(1), 'n_iter': koine.tensor(0)}}
    optimizer.load_state_dict(state)


def test_a_rate_below_0_of_a_schedule_comes_back():
    weight = nn.Parameter(koine.ones(2))
    optimizer, other = optim.SGD([weight], lr=0.5), optim.SGD([weight], lr=0.5)
    optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: -1)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]['lr'] == -0.5
