"""Streams, events, pinned memory, memory figures, random numbers."""
import pytest
import torch

koine = torch.koine


def test_streams():
    assert koine.current_stream() == koine.default_stream() and koine.default_stream().stream_id == 0
    s, t = koine.Stream(), koine.Stream(priority=-1)
    assert s != t and isinstance(s, koine.Stream) and not isinstance(torch.Stream('cpu'), koine.Stream)
    with koine.stream(s):
        assert koine.current_stream() == s
        with t:
            assert koine.current_stream() == t
        x = torch.ones(1000).koine() * 3
        assert koine.current_stream() == s
    with koine.stream(None):
        assert koine.current_stream() == koine.default_stream()
    koine.current_stream().wait_stream(s)
    x.record_stream(koine.current_stream())
    assert x.sum().item() == 3000
    s.synchronize()
    assert s.query() and t.query()
    koine.set_stream(s)
    assert koine.current_stream() == s
    koine.set_stream(koine.default_stream())
    assert {koine.Stream().stream_id for _ in range(100)} == set(range(1, 33))


def test_events():
    start, end, never = koine.Event(enable_timing=True), koine.Event(enable_timing=True), koine.Event()
    assert isinstance(start, koine.Event) and never.query()
    start.record()
    x = torch.ones(100, 100).koine()
    x = x + x
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    s = koine.Stream()
    s.wait_event(end)
    e = s.record_event()
    e.wait()
    with pytest.raises((RuntimeError, ValueError)):
        start.elapsed_time(koine.Event(enable_timing=True))


def test_pinned_memory():
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and x[10:].is_pinned() and not torch.ones(3).is_pinned() and not x.koine().is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned() and torch.empty(0).pin_memory().numel() == 0
    y = x.to('koine', non_blocking=True)
    assert y.sum().item() == 499500
    z = x[10:20].to('koine', torch.float16, non_blocking=True)
    assert torch.equal(z.cpu(), x[10:20].half())
    back = torch.empty(1000, pin_memory=True)
    back.copy_(y * 2, non_blocking=True)
    koine.synchronize()
    assert torch.equal(back, x * 2)
    assert koine.host_memory_stats()['active_bytes.current'] > 0
    del x
    assert y.sum().item() == 499500


def test_memory_figures():
    koine.empty_cache()
    before, reserved = koine.memory_allocated(), koine.memory_reserved()  # graphs of other tests' compiled functions
    koine.reset_peak_memory_stats()
    x = torch.empty(1 << 20, device='koine')
    assert koine.memory_allocated() - before == 4 << 20
    del x
    assert koine.memory_allocated() == before and koine.max_memory_allocated() - before == 4 << 20
    assert koine.memory_reserved() >= 4 << 20
    koine.empty_cache()
    assert koine.memory_reserved() == reserved and koine.max_memory_reserved() >= 4 << 20
    free, total = koine.mem_get_info()
    assert 0 < free <= total and koine.memory_stats()['num_ooms'] == 0
    assert torch.accelerator.memory_stats()['allocated_bytes.all.current'] == before
    assert torch.accelerator.get_memory_info() == (free, total)
    assert 'memory summary' in koine.memory_summary()


def test_out_of_memory(tmp_path):
    with pytest.raises(torch.OutOfMemoryError, match='out of memory'):
        torch.empty(1 << 50, device='koine')
    with pytest.raises(RuntimeError):
        torch.empty(-1, device='koine')
    koine.record_memory_history(100)
    torch.empty(100, device='koine')
    koine.memory_snapshot(str(tmp_path / 'snapshot.json'))
    assert any(segment['total_size'] >= 400 for segment in koine.memory_snapshot())
    koine.record_memory_history(0)
    assert 'segments' in (tmp_path / 'snapshot.json').read_text()
    koine.set_per_process_memory_fraction(0.5)
    assert koine.get_per_process_memory_fraction() == 0.5
    koine.set_per_process_memory_fraction(1.0)


def test_seeds():
    torch.manual_seed(7)
    assert koine.initial_seed() == 7
    state = koine.get_rng_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and not state.is_koine
    koine.default_generators[0].set_offset(40)
    assert koine.default_generators[0].get_offset() == 40 and not torch.equal(koine.get_rng_state(), state)
    koine.set_rng_state(state)
    assert koine.default_generators[0].get_offset() == 0 and torch.equal(koine.get_rng_state_all()[0], state)
    koine.set_rng_state_all([state] * koine.device_count())
    koine.manual_seed(-1)
    koine.seed()
    koine.seed_all()
    koine.manual_seed_all(2**64 - 1)
    assert koine.initial_seed() == 2**64 - 1
    with pytest.raises(RuntimeError, match='multiple of 4'):
        koine.default_generators[0].set_offset(3)
    with pytest.raises(RuntimeError, match='ByteTensor of 16'):
        koine.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_generators():
    g, h = torch.Generator('koine'), torch.Generator('koine:0')
    g.manual_seed(5)
    h.set_state(g.get_state())
    assert h.initial_seed() == 5 and g.device == torch.device('koine:0') and g.clone_state().initial_seed() == 5
    with torch.random.fork_rng(devices=[0], device_type='koine'):
        torch.manual_seed(1)
    assert koine.initial_seed() == 0
    if torch._C._dispatch_has_kernel_for_dispatch_key('aten::normal_', 'PrivateUse1'):
        assert torch.equal(torch.randn(9, generator=g, device='koine').cpu(),
                           torch.randn(9, generator=h, device='koine').cpu())
