"""torch.profiler: Koine's kernels, the operators that they belong to, memory, and the trace."""
import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def product(x):
    return (x @ x).sum().item()


@pytest.fixture
def x():
    x = torch.randn(200, 200).koine()
    product(x)
    return x


def rows(profiled):
    return {entry.key: entry for entry in profiled.key_averages()}


def test_kernels_are_rows_with_their_times(x):
    with profile(activities=BOTH) as profiled:
        product(x)
        product(x)
    found = rows(profiled)
    kernel = found['gemm_tiles']
    assert kernel.count == 2 and kernel.device_type == torch.autograd.DeviceType.PrivateUse1
    assert 0 < kernel.self_device_time_total < 1e5 and kernel.cpu_time_total == 0
    assert 'Memcpy DtoH' in found
    table = profiled.key_averages().table(sort_by='self_device_time_total')
    assert 'gemm_tiles' in table and 'KOINE time' in table


def test_operators_have_the_time_of_their_kernels(x):
    with profile(activities=BOTH) as profiled:
        with record_function('mine'):
            product(x)
    found = rows(profiled)
    assert found['aten::mm'].device_time_total > 0
    assert found['aten::mm'].self_device_time_total == pytest.approx(found['gemm_tiles'].self_device_time_total)
    kernels = sum(entry.self_device_time_total for entry in found.values() if entry.cpu_time_total == 0)
    assert found['mine'].device_time_total == pytest.approx(kernels)


def test_backward_passes_on_another_thread(x):
    y = x.detach().requires_grad_()
    torch.relu(y).sum().backward()
    torch.koine.synchronize()  # else kernels of this pass may run, and be counted, below
    with profile(activities=BOTH) as profiled:
        torch.relu(y).sum().backward()
        torch.koine.synchronize()
    found = rows(profiled)
    assert found['aten::threshold_backward'].device_time_total > 0
    assert found['aten::threshold_backward'].self_device_time_total == pytest.approx(
        found['pointwise_threshold_backward'].self_device_time_total)


def test_the_trace_has_a_track_per_stream(x, tmp_path):
    with profile(activities=BOTH) as profiled:
        product(x)
    profiled.export_chrome_trace(str(tmp_path / 'trace.json'))
    events = json.loads((tmp_path / 'trace.json').read_text())['traceEvents']
    kernel, = (e for e in events if e.get('name') == 'gemm_tiles')
    outer, = (e for e in events if e.get('name') == 'aten::mm' and
              e['args']['External id'] == kernel['args']['External id'])
    assert kernel['cat'] == 'kernel' and kernel['dur'] > 0 and kernel['ts'] >= outer['ts']
    assert kernel['args']['operation'] == 'gemm' and len(kernel['args']['global size']) == 3
    names = [e['args'] for e in events if e.get('ph') == 'M' and e['pid'] == kernel['pid']]
    assert {'name': torch.koine.get_device_name()} in names and {'name': 'stream 0'} in names


def test_the_profilers_schedule(x):
    seen = []
    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: seen.append(rows(p)['gemm_tiles'].count)) as profiled:
        for _ in range(8):
            product(x)
            profiled.step()
    assert seen == [2, 2]


def test_replays_belong_to_the_range_around_them(x):
    graph, y = torch.koine.KoineGraph(), torch.empty_like(x)
    with torch.koine.graph(graph):
        for _ in range(8):  # enough for a thread of its own to enqueue them
            torch.mm(x, x, out=y)
    with profile(activities=BOTH) as profiled:
        with record_function('replay'):
            graph.replay()
        torch.koine.synchronize()
    found = rows(profiled)
    assert found['gemm_tiles'].count == 8
    assert found['replay'].device_time_total == pytest.approx(found['gemm_tiles'].self_device_time_total)


def test_memory(x):
    with profile(activities=BOTH, profile_memory=True) as profiled:
        y = torch.relu(x)
        z = torch.exp(y)
        del z
    found = rows(profiled)
    assert found['aten::relu'].device_memory_usage == 4 * 200 * 200
    assert found['aten::exp'].device_memory_usage == 4 * 200 * 200
    assert found['[memory]'].self_device_memory_usage == -4 * 200 * 200


def test_the_device_alone(x):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiled:
        product(x)
    assert rows(profiled)['gemm_tiles'].self_device_time_total > 0


def test_times_by_events_around_the_operators(x):
    with torch.autograd.profiler.profile(use_device='koine', use_kineto=False) as profiled:
        product(x)
    times = {entry.key: entry.device_time_total for entry in profiled.key_averages()}
    assert times['aten::mm'] > 0 and times['aten::sum'] > 0
    assert 'aten::mm' in profiled.key_averages().table(sort_by='device_time_total')
