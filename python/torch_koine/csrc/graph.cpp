// graph.cpp - torch.classes.koine.Graph and Pool: what torch.koine.KoineGraph is made of (torch.cuda.CUDAGraph).
#include "error.h"
#include "tensor.h"

#include <koine/graph.h>
#include <koine/memory.h>

#include <torch/custom_class.h>

#include <string>

namespace koine
{

// Memory that graphs share. It stays in use as long as one of them.
class Pool final : public torch::CustomClassHolder
{
  public:
    Pool() : handle(check(kn_mem_pool_new(kn_device_current()))) {}
    ~Pool() override { kn_mem_pool_free(handle); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    kn_mem_pool *const handle;
};

class Graph final : public torch::CustomClassHolder
{
  public:
    Graph() : handle(check(kn_graph_new())) {}
    ~Graph() override { kn_graph_free(handle); }
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    // Records what the thread enqueues on its current stream.
    void begin() { check(kn_graph_capture_begin(handle, nullptr)); }
    void end() { check(kn_graph_capture_end(handle)); }
    void replay() { check(kn_graph_replay(handle)); }
    void reset() { check(kn_graph_reset(handle)); }

    void use(const c10::intrusive_ptr<Pool> &shared)
    {
        check(kn_graph_set_pool(handle, shared->handle));
        pool = shared;
    }

    int64_t commands() { return kn_graph_command_count(handle); }
    std::string dump() { return taken(kn_graph_debug_dump(handle)); }

  private:
    kn_graph *const handle;
    c10::intrusive_ptr<Pool> pool;
};

TORCH_LIBRARY_FRAGMENT(koine, m)
{
    m.class_<Pool>("Pool").def(torch::init<>());
    m.class_<Graph>("Graph")
        .def(torch::init<>())
        .def("begin", &Graph::begin)
        .def("end", &Graph::end)
        .def("replay", &Graph::replay)
        .def("reset", &Graph::reset)
        .def("use", &Graph::use)
        .def("commands", &Graph::commands)
        .def("dump", &Graph::dump);
    m.def("is_capturing() -> bool", [] { return kn_is_current_stream_capturing(nullptr); });
}

} // namespace koine
