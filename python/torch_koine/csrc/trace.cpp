// trace.cpp - torch.profiler: Koine's kernels and transfers by name, with their times on the device.
//
// PyTorch's profiler, Kineto, asks the registered IActivityProfiler for a session and tells it which of PyTorch's
// events begins and ends on the thread: its correlation id. Koine's profiler records the commands with that number.
#include "tensor.h"

#include <koine/profiler.h>

#include <c10/util/ApproximateClock.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace koine
{

using libkineto::ActivityType;
using Activity = libkineto::GenericTraceActivity;

// --- clocks ----------------------------------------------------------------------------------------------------------

// Kineto's times are the system's clock, Koine's CLOCK_MONOTONIC. The closest of a few pairs of readings.
static int64_t system_minus_monotonic()
{
    const auto monotonic = [] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
    };
    int64_t narrowest = INT64_MAX, offset = 0;
    for (int i = 0; i < 5; i++) {
        const int64_t before = monotonic(), system = c10::getTime(), after = monotonic();
        if (after - before >= narrowest)
            continue;
        narrowest = after - before;
        offset = system - (before + (after - before) / 2);
    }
    return offset;
}

// --- which of PyTorch's events a thread is in ------------------------------------------------------------------------

static std::atomic<uint64_t> sessions{0};

// The numbers of the events around the thread's innermost one. What an earlier session left open is forgotten.
static std::vector<uint64_t> &events_around()
{
    static thread_local uint64_t of = 0;
    static thread_local std::vector<uint64_t> around;
    const uint64_t current = sessions.load(std::memory_order_relaxed);
    if (of != current) {
        around.clear();
        kn_profiler_correlate(0);
    }
    of = current;
    return around;
}

static void enter_event(uint64_t id) { events_around().push_back(kn_profiler_correlate(id)); }

static void leave_event()
{
    auto &around = events_around();
    if (around.empty()) // it began before the session
        return;
    kn_profiler_correlate(around.back());
    around.pop_back();
}

// --- a session -------------------------------------------------------------------------------------------------------

static ActivityType type_of(kn_profiler_kind kind)
{
    switch (kind) {
    case KN_PROFILER_COPY:
        return ActivityType::GPU_MEMCPY;
    case KN_PROFILER_FILL:
        return ActivityType::GPU_MEMSET;
    default:
        return ActivityType::CONCURRENT_KERNEL;
    }
}

class Session final : public libkineto::IActivityProfilerSession
{
  public:
    explicit Session(const std::set<ActivityType> &types) : wanted(types), buffer(new libkineto::CpuTraceBuffer)
    {
        buffer->span = libkineto::TraceSpan(0, 0, "koine");
        buffer->gpuOpCount = 0;
        sessions++;
    }
    ~Session() override { end(); }

    void start() override
    {
        is_running = kn_profiler_start_with(nullptr) == KN_OK;
        if (is_running)
            return;
        problems.emplace_back(kn_error_message());
        TORCH_WARN("torch.profiler will show no kernels of koine: ", kn_error_message());
        kn_error_clear();
    }
    void stop() override
    {
        if (!end())
            return;
        const int64_t offset = system_minus_monotonic();
        int64_t count = 0;
        const std::unique_ptr<kn_profiler_command, void (*)(void *)> commands(kn_profiler_commands(&count), kn_free);
        if (!commands)
            problems.emplace_back(kn_error_message());
        for (int64_t i = 0; i < count && commands; i++)
            add(commands.get()[i], offset);
        kn_profiler_clear();
    }

    std::vector<std::string> errors() override { return problems; }
    void processTrace(libkineto::ActivityLogger &logger) override
    {
        processTrace(
            logger, [](int32_t) { return nullptr; }, 0, INT64_MAX);
    }
    void processTrace(libkineto::ActivityLogger &logger, libkineto::getLinkedActivityCallback find, int64_t,
                      int64_t) override
    {
        for (const auto &activity : buffer->activities) {
            activity->linked = activity->id != 0 ? find(activity->id) : nullptr;
            activity->log(logger);
        }
        if (!buffer->activities.empty())
            buffer->span.endTime = buffer->activities.back()->endTime;
        for (auto other = devices.begin(); other != devices.end(); ++other)
            if (other != devices.begin()) // which getDeviceInfo tells of
                logger.handleDeviceInfo(device_info(*other), buffer->span.startTime);
    }

    std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override
    {
        return devices.empty() ? nullptr : std::make_unique<libkineto::DeviceInfo>(device_info(*devices.begin()));
    }
    std::vector<libkineto::ResourceInfo> getResourceInfos() override
    {
        std::vector<libkineto::ResourceInfo> infos;
        for (const auto &[device, stream] : streams)
            infos.push_back({stream, stream, device, "stream " + std::to_string(stream)});
        return infos;
    }
    std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer); }

    void pushCorrelationId(uint64_t id) override { enter_event(id); }
    void popCorrelationId() override { leave_event(); }
    void pushUserCorrelationId(uint64_t id) override { enter_event(id); }
    void popUserCorrelationId() override { leave_event(); }

  private:
    static libkineto::DeviceInfo device_info(const std::pair<const int64_t, std::string> &device)
    {
        const auto &[index, name] = device;
        return {index, libkineto::kExceedMaxPid + index, name, "koine:" + std::to_string(index)};
    }

    // Was it running?
    bool end()
    {
        if (!is_running)
            return false;
        is_running = false;
        if (kn_profiler_stop() == KN_OK)
            return true;
        problems.emplace_back(kn_error_message());
        kn_error_clear();
        return false;
    }

    void add(const kn_profiler_command &command, int64_t offset)
    {
        const ActivityType type = type_of(command.kind);
        if (command.start == 0 || wanted.count(type) == 0)
            return;
        const int64_t device = device_of(command.device).index();
        devices.emplace(device, kn_device_name(command.device));
        streams.emplace(device, command.stream);
        buffer->emplace_activity(buffer->span, type, command.name);
        buffer->gpuOpCount++;
        Activity &activity = *buffer->activities.back();
        activity.startTime = command.start + offset;
        activity.endTime = command.end + offset;
        activity.id = static_cast<int32_t>(command.correlation);
        activity.device = static_cast<int32_t>(device);
        activity.resource = command.stream;
        activity.threadId = 0;
        describe(activity, command);
    }
    static void describe(Activity &activity, const kn_profiler_command &command)
    {
        const auto sizes = [](const size_t(&of)[3]) { return std::vector<int64_t>(of, of + 3); };
        activity.addTypedMetadata("device", int64_t{activity.device});
        activity.addTypedMetadata("stream", int64_t{command.stream});
        if (command.correlation != 0)
            activity.addTypedMetadata("correlation", static_cast<int64_t>(command.correlation));
        if (command.operation != nullptr)
            activity.addTypedMetadata("operation", std::string(command.operation));
        if (command.kind != KN_PROFILER_KERNEL) {
            activity.addTypedMetadata("bytes", static_cast<int64_t>(command.bytes));
            return;
        }
        activity.addTypedMetadata("global size", sizes(command.global));
        if (command.local[0] != 0)
            activity.addTypedMetadata("local size", sizes(command.local));
    }

    const std::set<ActivityType> wanted;
    std::unique_ptr<libkineto::CpuTraceBuffer> buffer;
    std::map<int64_t, std::string> devices;
    std::set<std::pair<int64_t, int>> streams;
    std::vector<std::string> problems;
    bool is_running = false;
};

// --- registration ----------------------------------------------------------------------------------------------------

class KernelProfiler final : public libkineto::IActivityProfiler
{
  public:
    const std::string &name() const override
    {
        static const std::string name = "koine";
        return name;
    }
    const std::set<ActivityType> &availableActivities() const override
    {
        static const std::set<ActivityType> types = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                                     ActivityType::GPU_MEMSET};
        return types;
    }
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType> &types,
                                                                   const libkineto::Config &) override
    {
        for (const ActivityType type : availableActivities())
            if (types.count(type) != 0)
                return std::make_unique<Session>(types);
        return nullptr;
    }
    std::unique_ptr<libkineto::IActivityProfilerSession>
    configure(int64_t, int64_t, const std::set<ActivityType> &types, const libkineto::Config &config) override
    {
        return configure(types, config);
    }
};

REGISTER_PRIVATEUSE1_PROFILER(KernelProfiler);

} // namespace koine
