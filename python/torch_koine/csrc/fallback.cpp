// fallback.cpp - operators that the device does not have run on the CPU: counted, timed, and said once.
#include "fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>

namespace koine
{

static struct {
    std::mutex lock;
    std::unordered_map<std::string, Fallback> operators;
    std::atomic<FallbackMode> mode{FallbackMode::warn};
} state;

std::unordered_map<std::string, Fallback> fallbacks()
{
    const std::lock_guard<std::mutex> hold(state.lock);
    return state.operators;
}

void forget_fallbacks()
{
    const std::lock_guard<std::mutex> hold(state.lock);
    state.operators.clear();
}

FallbackMode exchange_fallback_mode(FallbackMode mode) { return state.mode.exchange(mode); }

// Is it the first time?
static bool count(const std::string &name, double seconds)
{
    const std::lock_guard<std::mutex> hold(state.lock);
    Fallback &entry = state.operators[name];
    entry.seconds += seconds;
    return entry.calls++ == 0;
}

// Their schemas do not say what they write, so the CPU's changes would be lost.
static bool writes_silently(const std::string &name) { return name == "aten::native_batch_norm"; }

void run_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    const std::string name = c10::toString(op.operator_name());
    TORCH_CHECK_NOT_IMPLEMENTED(
        state.mode.load() != FallbackMode::refuse && !writes_silently(name), name, " does not run on the device koine",
        writes_silently(name) ? " with these arguments" : "", "; move its arguments to the CPU");
    const auto start = std::chrono::steady_clock::now();
    at::native::cpu_fallback(op, stack);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (count(name, took.count()) && state.mode.load() == FallbackMode::warn)
        TORCH_WARN(name, " does not run on the device koine: it runs on the CPU, with copies of its tensors. "
                         "torch.koine.fallbacks() shows how often, and how long it takes.");
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

} // namespace koine
