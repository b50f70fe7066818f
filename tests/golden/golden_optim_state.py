"""State of PyTorch's optimizers in Koine's files, also of its earlier versions, and what the parameters are after more
steps."""
import json
import os

import numpy as np
import torch

from golden_file import exact, save_safetensors

CASES = {
    'AdamW': dict(lr=0.1, amsgrad=True),
    'SGD': dict(lr=0.1, momentum=0.9),
    'NAdam': dict(lr=0.05),
    'ASGD': dict(lr=0.05, t0=2),
    'RMSprop': dict(lr=0.05, centered=True, momentum=0.5),
    'Rprop': dict(lr=0.05),
    'Adafactor': dict(lr=0.05, eps=(None, 1e-2)),
}
# One group of parameters; hyperparameters in the order of the files.
EARLIER = {
    'Adam': (dict(lr=0.1, weight_decay=0.01, amsgrad=True), [0.1, 0.9, 0.999, 1e-8, 0.01, 1]),
    'SGD': (dict(lr=0.1, momentum=0.9, dampening=0.5), [0.1, 0.9, 0.5, 0, 0]),
}


def earlier(folder, gradients):
    for name, (params, hyper) in EARLIER.items():
        leaves = [torch.ones(2, 3, requires_grad=True), torch.full((2, 3), -0.5, requires_grad=True)]
        optimizer = getattr(torch.optim, name)(leaves, **params)
        for step in range(6):
            for i, leaf in enumerate(leaves):
                leaf.grad = gradients[step if i == 0 else 5 - step].clone()
            optimizer.step()
            if step == 2:
                state = {'%s.%d' % (key, i): value.clone() for i, leaf in enumerate(leaves)
                         for key, value in optimizer.state[leaf].items() if key != 'step'}
                state.update(step=torch.tensor([3, 3]), hyperparameters=torch.tensor(hyper))
                path = os.path.join(folder, 'optim_earlier_%s.safetensors' % name)
                save_safetensors(path, state, {'optimizer': name})
                middle = {'p': leaves[0].detach().clone(), 'q': leaves[1].detach().clone()}
        save_safetensors(os.path.join(folder, 'optim_earlier_path_%s.safetensors' % name),
                         dict(middle, p_after=leaves[0].detach(), q_after=leaves[1].detach(),
                              gradients=torch.stack(gradients)), {'torch': torch.__version__})


def make(folder):
    random = np.random.RandomState(5)
    gradients = [exact(random.uniform(-1, 1, (2, 3))) for _ in range(6)]
    torch.set_default_dtype(torch.float64)
    for name, params in CASES.items():
        p, q = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
        optimizer = getattr(torch.optim, name)([{'params': [p]}, {'params': [q], 'lr': 0.02}], **params)
        for step in range(6):
            p.grad, q.grad = gradients[step].clone(), gradients[5 - step].clone()
            optimizer.step()
            if step == 2:  # as in docs/optim.md
                saved = optimizer.state_dict()
                state = {'state.%d.%s' % (index, key): torch.as_tensor(value).clone().contiguous()
                         for index, state in saved['state'].items()
                         for key, value in state.items() if value is not None}
                middle = {'p': p.detach().clone(), 'q': q.detach().clone()}
        save_safetensors(os.path.join(folder, 'optim_state_%s.safetensors' % name), state,
                         {'optimizer': name, 'param_groups': json.dumps(saved['param_groups'])})
        save_safetensors(os.path.join(folder, 'optim_path_%s.safetensors' % name),
                         dict(middle, p_after=p.detach(), q_after=q.detach(), gradients=torch.stack(gradients)),
                         {'torch': torch.__version__})
    earlier(folder, gradients)
    torch.set_default_dtype(torch.float32)
