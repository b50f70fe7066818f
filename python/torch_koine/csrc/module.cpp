// module.cpp - what torch.koine asks the library, as operators of the namespace koine: torch.ops.koine.device_name(0).
#include "autograd.h"
#include "error.h"
#include "fallback.h"
#include "generator.h"
#include "tensor.h"

#include <koine/device.h>
#include <koine/memory.h>
#include <koine/status.h>

#include <ATen/core/Dict.h>
#include <torch/library.h>

#include <string>

namespace koine
{

using Figures = c10::Dict<std::string, int64_t>;

static kn_device *device_at(int64_t index)
{
    return device_of(c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)));
}

// --- devices ---------------------------------------------------------------------------------------------------------

static std::string device_string(int64_t index) { return kn_device_string(device_at(index)); }

static kn_device_properties properties_at(int64_t index)
{
    kn_device_properties properties;
    check(kn_device_get_properties(device_at(index), &properties));
    return properties;
}

static c10::Dict<std::string, std::string> device_texts(int64_t index)
{
    const kn_device_properties of = properties_at(index);
    c10::Dict<std::string, std::string> texts;
    texts.insert("name", of.name);
    texts.insert("vendor", of.vendor);
    texts.insert("platform", of.platform);
    texts.insert("driver_version", of.driver_version);
    texts.insert("opencl_version", of.opencl_version);
    texts.insert("pci_address", of.pci_address);
    texts.insert("uuid", of.uuid);
    return texts;
}

static Figures device_figures(int64_t index)
{
    const kn_device_properties of = properties_at(index);
    Figures figures;
    figures.insert("type", of.type);
    figures.insert("total_memory", static_cast<int64_t>(of.total_memory));
    figures.insert("max_allocation", static_cast<int64_t>(of.max_allocation));
    figures.insert("local_memory", static_cast<int64_t>(of.local_memory));
    figures.insert("multi_processor_count", of.multi_processor_count);
    figures.insert("clock_mhz", of.clock_mhz);
    figures.insert("max_work_group_size", of.max_work_group_size);
    figures.insert("warp_size", of.warp_size);
    figures.insert("major", of.capability_major);
    figures.insert("minor", of.capability_minor);
    figures.insert("has_f64", of.has_f64);
    figures.insert("has_f16", of.has_f16);
    figures.insert("unified_memory", of.unified_memory);
    return figures;
}

static bool can_access_peer(int64_t device, int64_t peer)
{
    return kn_can_device_access_peer(device_at(device), device_at(peer));
}

// --- memory ----------------------------------------------------------------------------------------------------------

static Figures figures_of(const kn_memory_stat_entry *entries, int count)
{
    Figures figures;
    for (int i = 0; i < count; i++)
        figures.insert(entries[i].key, entries[i].value);
    return figures;
}

static Figures memory_stats(int64_t index)
{
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    return figures_of(entries, kn_memory_stats(device_at(index), entries, KN_MEMORY_STATS));
}

static Figures host_memory_stats()
{
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    return figures_of(entries, kn_host_memory_stats(entries, KN_MEMORY_STATS));
}

static std::string memory_summary(int64_t index, bool is_abbreviated)
{
    kn_device *const device = device_at(index);
    return taken(is_abbreviated ? kn_memory_summary_abbreviated(device) : kn_memory_summary(device));
}

static void memory_record_history(int64_t index, int64_t max_entries)
{
    check(kn_memory_record_history(device_at(index), static_cast<size_t>(max_entries)));
}

static void memory_snapshot(int64_t index, std::string path)
{
    check(kn_memory_snapshot(device_at(index), path.c_str()));
}

static void set_memory_fraction(int64_t index, double fraction)
{
    check(kn_set_per_process_memory_fraction(device_at(index), fraction));
}

// --- fallbacks -------------------------------------------------------------------------------------------------------

static c10::Dict<std::string, int64_t> fallback_calls()
{
    Figures calls;
    for (const auto &[name, entry] : fallbacks())
        calls.insert(name, entry.calls);
    return calls;
}

static c10::Dict<std::string, double> fallback_seconds()
{
    c10::Dict<std::string, double> seconds;
    for (const auto &[name, entry] : fallbacks())
        seconds.insert(name, entry.seconds);
    return seconds;
}

static int64_t exchange_mode(int64_t mode)
{
    return static_cast<int64_t>(exchange_fallback_mode(static_cast<FallbackMode>(mode)));
}

TORCH_LIBRARY(koine, m)
{
    m.def("is_initialized() -> bool", [] { return kn_is_initialized(); });
    m.def("init() -> ()", [] { check(kn_init()); });
    m.def("finish_backward_passes() -> ()", finish_backward_passes);
    m.def("device_count() -> int", [] { return static_cast<int64_t>(device_count()); });
    m.def("device_string(int device) -> str", device_string);
    m.def("device_texts(int device) -> Dict(str, str)", device_texts);
    m.def("device_figures(int device) -> Dict(str, int)", device_figures);
    m.def("can_access_peer(int device, int peer) -> bool", can_access_peer);
    m.def("manual_seed_all(int seed) -> ()", [](int64_t seed) { seed_all_devices(static_cast<uint64_t>(seed)); });
    m.def("default_generator(int device) -> Generator?",
          [](int64_t device) { return default_generator(static_cast<c10::DeviceIndex>(device)); });
    m.def("memory_stats(int device) -> Dict(str, int)", memory_stats);
    m.def("host_memory_stats() -> Dict(str, int)", host_memory_stats);
    m.def("memory_summary(int device, bool abbreviated) -> str", memory_summary);
    m.def("memory_record_history(int device, int max_entries) -> ()", memory_record_history);
    m.def("memory_snapshot(int device, str path) -> ()", memory_snapshot);
    m.def("set_memory_fraction(int device, float fraction) -> ()", set_memory_fraction);
    m.def("fallback_calls() -> Dict(str, int)", fallback_calls);
    m.def("fallback_seconds() -> Dict(str, float)", fallback_seconds);
    m.def("forget_fallbacks() -> ()", forget_fallbacks);
    m.def("exchange_fallback_mode(int mode) -> int", exchange_mode);
}

} // namespace koine
