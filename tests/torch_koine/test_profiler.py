"""torch.profiler with times on the device."""
import torch


def test_times_on_the_device():
    x = torch.randn(200, 200).koine()
    (x @ x).sum().item()
    with torch.autograd.profiler.profile(use_device='koine', use_kineto=False) as profile:
        (x @ x).sum().item()
    times = {entry.key: entry.device_time_total for entry in profile.key_averages()}
    assert times['aten::mm'] > 0 and times['aten::sum'] > 0
    assert 'aten::mm' in profile.key_averages().table(sort_by='device_time_total')
