// autograd.cpp - PyTorch's threads for backward passes, at the end of the process.
#include "autograd.h"

#include "tensor.h"

#include <koine/memory.h>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

namespace koine
{

// A pass without kernels. The thread that runs it lets go of the previous pass before.
static void run_empty_pass(c10::Device device)
{
    const at::AutoGradMode with_gradients(true);
    const at::TensorOptions options = at::TensorOptions(device).dtype(at::kFloat);
    const at::Tensor x = at::empty({1}, options).requires_grad_();
    torch::autograd::grad({x.view({1, 1})}, {x}, {at::empty({1, 1}, options)});
}

void finish_backward_passes()
{
    // From a thread of its own, whose state has no Python objects that this last pass would hold in turn.
    std::thread([] {
        for (c10::DeviceIndex i = 0; i < device_count(); i++)
            try {
                const c10::Device device(c10::kPrivateUse1, i);
                if (kn_max_memory_reserved(device_of(device)) > 0)
                    run_empty_pass(device);
            } catch (const std::exception &) { // a lost device, say: the process ends anyway
            }
    }).join();
}

} // namespace koine
