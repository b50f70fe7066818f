// fallback.h - operators that the device does not have run on the CPU.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace koine
{

struct Fallback {
    int64_t calls = 0;
    double seconds = 0; // on the CPU, with the copies
};

enum class FallbackMode { warn, silent, refuse };

std::unordered_map<std::string, Fallback> fallbacks(); // by the operators' names
void forget_fallbacks();
FallbackMode exchange_fallback_mode(FallbackMode mode); // returns the previous one

// Runs an operator on the CPU, with copies of its tensors there and back.
void run_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack);

} // namespace koine
