// fallback.h - operators that the device does not have run on the CPU.
#pragma once

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

} // namespace koine
