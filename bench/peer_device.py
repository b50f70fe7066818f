"""The device of PyTorch's side of bench/compare.py: which it is, waiting for it, the memory that tensors take there."""
import torch

DEVICE = torch.device('cpu')


def use_device(name, mode):
    """In the mode "benchmark" cuDNN times its algorithms at a convolution's first call.
    f16 is summed in f32, as in Koine."""
    global DEVICE
    DEVICE = torch.device(name)
    torch.backends.cudnn.benchmark = mode == 'benchmark'
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    allow_tf32(False)


def allow_tf32(allowed):
    """On a GPU f32 products and convolutions use real f32, except in TF32 benchmarks:
    otherwise they are not comparable."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def accelerator():
    """torch.cuda (also ROCm's), torch.xpu, ..."""
    return getattr(torch, DEVICE.type)


def wait():
    if DEVICE.type != 'cpu':
        accelerator().synchronize()


def peak_of(run, tensors):
    """The most bytes that tensors take during `run`, which starts with these: counted by the allocator, without what
    libraries allocate themselves."""
    if DEVICE.type != 'cpu':
        wait()
        before = accelerator().memory_allocated()
        accelerator().reset_peak_memory_stats()
        run()
        wait()
        grown = accelerator().max_memory_allocated() - before
    else:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            run()
        events = [event for event in profile.profiler.kineto_results.events() if event.name() == '[memory]']
        now = grown = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            now += event.nbytes()
            grown = max(grown, now)
    return grown + sum({t.data_ptr(): t.nbytes for t in tensors}.values())


def version():
    if DEVICE.type == 'cpu':
        return torch.__version__
    name = accelerator().get_device_name(DEVICE)
    if DEVICE.type != 'cuda':
        return '%s (%s)' % (torch.__version__, name)
    platform = 'ROCm %s, MIOpen' % torch.version.hip if torch.version.hip else 'CUDA %s, cuDNN' % torch.version.cuda
    return '%s (%s %s, %s)' % (torch.__version__, platform, torch.backends.cudnn.version(), name)
