// profiler.cpp - torch.profiler: how long each operator's work takes on the device, by events with times around it.
#include "error.h"
#include "guard.h"
#include "tensor.h"

#include <koine/stream.h>

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace koine
{

class Profiler final : public torch::profiler::impl::ProfilerStubs
{
  public:
    using Event = torch::profiler::impl::ProfilerVoidEventStub;

    void record(c10::DeviceIndex *index, Event *event, int64_t *cpu_ns) const override
    {
        const c10::DeviceIndex current = current_device();
        kn_device *const device = device_of(c10::Device(c10::kPrivateUse1, current));
        Event made(check(kn_event_new(device)), [](void *its) { kn_event_free(static_cast<kn_event *>(its)); });
        if (cpu_ns != nullptr)
            *cpu_ns = c10::getTime();
        check(kn_event_record(static_cast<kn_event *>(made.get()), nullptr));
        if (index != nullptr)
            *index = current;
        *event = std::move(made);
    }
    float elapsed(const Event *start, const Event *end) const override
    {
        double milliseconds = 0;
        check(kn_event_synchronize(static_cast<kn_event *>(start->get())));
        check(kn_event_synchronize(static_cast<kn_event *>(end->get())));
        check(kn_event_elapsed_time(static_cast<kn_event *>(start->get()), static_cast<kn_event *>(end->get()),
                                    &milliseconds));
        return static_cast<float>(milliseconds * 1000);
    }
    bool enabled() const override { return true; }
    void onEachDevice(std::function<void(int)> visit) const override
    {
        const c10::DeviceIndex before = current_device();
        for (c10::DeviceIndex i = 0; i < device_count(); i++) {
            set_current_device(i);
            visit(i);
        }
        set_current_device(before);
    }
    void synchronize() const override { check(kn_synchronize(nullptr)); }

    // Marks and ranges are for tools of vendors.
    void mark(const char *) const override {}
    void rangePush(const char *) const override {}
    void rangePop() const override {}
};

static Profiler profiler;
static const bool is_registered = (torch::profiler::impl::registerPrivateUse1Methods(&profiler), true);

} // namespace koine
