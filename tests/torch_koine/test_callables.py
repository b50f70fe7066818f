"""torch.koine.make_graphed_callables: the bits of the same programs run operator by operator."""
import copy

import pytest
import torch
from torch import nn


def nets():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.25), nn.Flatten())
    head = nn.Linear(4 * 6 * 6, 5)
    return body.koine(), head.koine()


def images(seed):
    return torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(seed)).koine()


TARGETS = torch.tensor([0, 3, 1])


def steps(body, head, passes=1):
    """Losses and weights of three steps of as many forward and backward passes."""
    rule = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    torch.koine.manual_seed(5)
    losses = []
    for i in range(3):
        rule.zero_grad()
        for j in range(passes):
            loss = nn.functional.cross_entropy(head(body(images(10 * i + j))), TARGETS.koine())
            loss.backward()
            losses.append(loss.item())
        rule.step()
    return losses, [p.tolist() for p in [*body.parameters(), *head.parameters()]]


@pytest.mark.parametrize('passes', [1, 2])
def test_modules_have_the_bits_of_eager_ones(passes):
    body, head = nets()
    state = copy.deepcopy(body.state_dict())
    expected = steps(body, head, passes)
    estimates = [one.tolist() for one in body.buffers()]

    body, head = nets()
    made = torch.koine.make_graphed_callables((body, head), ((images(1),), (torch.zeros(3, 144).koine()
                                                                             .requires_grad_(),)))
    assert made[0] is body and made[1] is head
    assert any(not torch.equal(one, state[name]) for name, one in body.state_dict().items()), 'warm-up runs the module'
    body.load_state_dict(state)
    assert steps(body, head, passes) == expected
    assert [one.tolist() for one in body.buffers()] == estimates

    body.eval()  # as before
    assert body(images(1)[:2]).shape == (2, 144)


def test_a_function_and_gradients_of_its_arguments():
    def function(x, both):
        return {'sum': (x * both['scale']).exp() + both['shift'], 'count': torch.ones_like(x)}

    scale, shift = torch.rand(4).koine(), torch.rand(4).koine()
    x = torch.rand(3, 4).koine()
    sample = x.clone()
    graphed = torch.koine.make_graphed_callables(
        function, (sample.requires_grad_(), {'scale': scale.clone().requires_grad_(), 'shift': shift.clone()}))
    assert torch.equal(sample, x) and sample.grad is None
    for i in range(3):
        inputs = [(x + i).requires_grad_() for _ in range(2)]
        factors = [scale.clone().requires_grad_() for _ in range(2)]
        for which, own, factor in zip((function, graphed), inputs, factors):
            for _ in range(2):
                results = which(own, {'scale': factor, 'shift': shift})
                assert not results['count'].requires_grad
                (results['sum'] * 2).sum().backward()
        assert torch.equal(inputs[0].grad, inputs[1].grad) and torch.equal(factors[0].grad, factors[1].grad)
    with torch.no_grad():
        assert torch.equal(graphed(x, {'scale': scale, 'shift': shift})['sum'], (x * scale).exp() + shift)


def test_what_cannot_be_graphed_says_so():
    graphed = torch.koine.make_graphed_callables(torch.sin, (torch.ones(3).koine().requires_grad_(),))
    x = torch.ones(3, device='koine', requires_grad=True)
    first = graphed(x)
    graphed(x)
    with pytest.raises(RuntimeError, match='called again before the backward pass'):
        first.sum().backward()
    with pytest.raises(RuntimeError, match=r'recorded with torch.float32 \(3,\), and cannot take torch.float32 \(1,\)'):
        graphed(x[:1])
    with pytest.raises(RuntimeError, match='arguments as it was recorded with'):
        graphed(x, x)
    with pytest.raises(RuntimeError, match='must be tensors on the device koine'):
        torch.koine.make_graphed_callables(torch.sin, (torch.ones(3),))
    with pytest.raises(RuntimeError, match='the results must be tensors'):
        torch.koine.make_graphed_callables(lambda x: (x, 1), (torch.ones(3).koine(),))
    hooked = nn.Linear(3, 3).koine()
    hooked.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match='hooks'):
        torch.koine.make_graphed_callables(hooked, (torch.ones(2, 3).koine(),))
    with torch.autocast('koine'), pytest.raises(RuntimeError, match='cache_enabled=False'):
        torch.koine.make_graphed_callables(torch.sin, (torch.ones(3).koine(),))
