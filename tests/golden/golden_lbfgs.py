"""Twenty steps of torch.optim.LBFGS on Rosenbrock's function, and its state after ten of them."""
import json
import os

import torch

from golden_file import save_safetensors, text

STEPS, SAVED_AFTER = 20, 10
CASES = {
    'default': dict(lr=0.1, max_iter=4),
    'history': dict(lr=0.1, max_iter=3, history_size=2),
    'max_eval': dict(lr=0.05, max_iter=10, max_eval=3),
    'tolerances': dict(lr=0.3, max_iter=8, tolerance_grad=1e-2, tolerance_change=1e-3),
    'wolfe': dict(max_iter=3, line_search_fn='strong_wolfe'),
    'wolfe_history': dict(lr=0.5, max_iter=2, history_size=3, line_search_fn='strong_wolfe'),
    'wolfe_few_evaluations': dict(lr=4.0, max_iter=5, max_eval=4, line_search_fn='strong_wolfe'),
    'wolfe_far': dict(lr=1e-3, max_iter=1, max_eval=20, line_search_fn='strong_wolfe'),
    'wolfe_maximize': dict(max_iter=3, line_search_fn='strong_wolfe', maximize=True),
}
CHOICES = {'strong_wolfe': 1}


def loss_of(p, q, sign):
    return sign * (((1 - p) ** 2).sum() + 10 * ((q - p * p) ** 2).sum())


def flatten(saved):
    """As in docs/optim.md."""
    tensors = {}
    for index, state in saved['state'].items():
        for key, value in state.items():
            if key == 'al' or value is None:
                continue
            value = torch.stack([torch.as_tensor(v) for v in value]) if isinstance(value, list) else value
            tensors['state.%d.%s' % (index, key)] = torch.as_tensor(value).detach().clone().contiguous()
    return tensors


def make(folder):
    tensors, metadata = {}, {'torch': torch.__version__, 'cases': ' '.join(CASES), 'steps': str(STEPS)}
    torch.set_default_dtype(torch.float64)
    p0, q0 = torch.tensor([-1.25, 0.5, 2.0]), torch.tensor([1.0, -0.75, 3.5])
    tensors['p'], tensors['q'] = p0, q0
    for name, params in CASES.items():
        p, q = p0.clone().requires_grad_(), q0.clone().requires_grad_()
        optimizer = torch.optim.LBFGS([p, q], **params)
        sign, evaluations, path = -1.0 if params.get('maximize') else 1.0, [0], []

        def closure():
            evaluations[0] += 1
            optimizer.zero_grad()
            loss = loss_of(p, q, sign)
            loss.backward()
            return loss

        for step in range(STEPS):
            loss = optimizer.step(closure)
            figures = torch.tensor([float(loss), float(evaluations[0])])
            path.append(torch.cat([p.detach(), q.detach(), figures]))
            if name == 'wolfe_history' and step + 1 == SAVED_AFTER:
                saved = optimizer.state_dict()
                save_safetensors(os.path.join(folder, 'optim_state_LBFGS.safetensors'), flatten(saved),
                                 {'optimizer': 'LBFGS', 'param_groups': json.dumps(saved['param_groups'])})
        tensors[name + '/path'] = torch.stack(path)  # p, q, the loss that the step returned, evaluations so far
        metadata[name] = ' '.join(['op=LBFGS'] + ['%s=%s' % (k, text(CHOICES.get(v, v))) for k, v in params.items()])
    torch.set_default_dtype(torch.float32)
    save_safetensors(os.path.join(folder, 'lbfgs.safetensors'), tensors, metadata)
