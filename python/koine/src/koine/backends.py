"""torch.backends: switches of libraries that are not used here, so that programs may set them. None has an effect:
koine.use_deterministic_algorithms and koine.set_float32_matmul_precision have."""
import types

cudnn = types.SimpleNamespace(benchmark=False, deterministic=False, enabled=False, allow_tf32=False,
                              is_available=lambda: False, version=lambda: None)
cuda = types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False), is_built=lambda: False)
mps = types.SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
