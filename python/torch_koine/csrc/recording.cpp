// recording.cpp - torch.classes.koine.Recording: a function of tensors recorded as a graph, for torch.compile.
//
// Inputs that stay where they are (parameters, what a forward pass has saved) are used in place, others are copied to
// tensors of the recording. Results are in the graph's memory, which the next replay overwrites: those that the caller
// keeps to itself (owned) are copied at once, the others (saved tensors, gradients) only if they still exist when the
// next replay begins. They are given out with storages of their own, so both can be done behind a storage, and every
// view of it follows.
#include "error.h"
#include "storage.h"
#include "tensor.h"

#include <koine/graph.h>
#include <koine/stream.h>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/custom_class.h>

#include <mutex>
#include <string>
#include <vector>

namespace koine
{

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

// The layout of a tensor, with its place in its storage in bytes.
struct Layout {
    explicit Layout(const at::Tensor &of)
        : type(of.scalar_type()), sizes(of.sizes()), strides(of.strides()),
          offset(of.storage_offset() * static_cast<int64_t>(of.element_size()))
    {
    }
    bool has_shape_of(const at::Tensor &tensor) const
    {
        return tensor.scalar_type() == type && tensor.sizes() == sizes && tensor.strides() == strides;
    }
    at::Tensor on(const c10::Storage &storage, int64_t at) const
    {
        at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
            c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(type));
        tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides,
                                                            at / static_cast<int64_t>(c10::elementSize(type)));
        return tensor;
    }

    at::ScalarType type;
    c10::SmallVector<int64_t, 5> sizes, strides;
    int64_t offset;
};

static void *address_of(const at::Tensor &tensor)
{
    return static_cast<char *>(tensor.unsafeGetTensorImpl()->unsafe_storage().data_ptr().get()) +
           tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
}

static c10::StorageImpl *storage_of(const at::Tensor &tensor)
{
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// Memory of a recording, which gives out storages without an allocator: the next replay gives out the same.
static bool is_of_recording(const at::Tensor &tensor) { return storage_of(tensor)->allocator() == nullptr; }

// Where a tensor is: it is still there if it has the same storage, or memory of a recording at the same address. Else
// other memory may have that address by now.
struct Place {
    explicit Place(const at::Tensor &of)
        : storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage_of(of))), address(address_of(of))
    {
    }
    bool is_of(const at::Tensor &tensor) const
    {
        return address_of(tensor) == address &&
               (is_of_recording(tensor) || storage_of(tensor) == storage._unsafe_get_target());
    }

    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    void *address;
};

struct Input {
    Layout layout;
    at::Tensor copy; // what the graph reads; undefined: the input itself
    bool is_written;
};

// Memory of the graph that holds results.
struct Kept {
    c10::Storage storage;
    bool is_owned;
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> given; // the latest
};

struct Result {
    Layout layout;
    int input; // whose memory it is; -1: that of `kept`
    int kept;
};

class Recording final : public torch::CustomClassHolder
{
  public:
    Recording() : graph(check(kn_graph_new())) {}
    ~Recording() override { kn_graph_free(graph); }
    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;

    // Remembers where the inputs of a call are, for stay(): what a forward pass saves stays as soon as it is recorded.
    void note(const std::vector<at::Tensor> &tensors)
    {
        places.clear();
        for (const at::Tensor &tensor : tensors)
            places.emplace_back(tensor);
    }
    c10::List<bool> stay(const std::vector<at::Tensor> &tensors)
    {
        c10::List<bool> found;
        for (size_t i = 0; i < tensors.size(); i++)
            found.push_back(is_of_recording(tensors[i]) || places[i].is_of(tensors[i]));
        return found;
    }

    // The tensors to run the function on in the capture.
    std::vector<at::Tensor> prepare(const std::vector<at::Tensor> &tensors, const c10::List<bool> &in_place,
                                    const c10::List<bool> &written)
    {
        const at::AutoDispatchBelowADInplaceOrView below;
        note(tensors);
        std::vector<at::Tensor> used;
        for (size_t i = 0; i < tensors.size(); i++) {
            const at::Tensor tensor = tensors[i].detach();
            Input input{Layout(tensor), {}, written[i]};
            if (!in_place[i]) {
                input.copy = empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type(), tensor.device());
                input.copy.copy_(tensor); // an error if its elements overlap
            }
            used.push_back(in_place[i] ? tensor : input.copy);
            inputs.push_back(std::move(input));
        }
        return used;
    }

    void begin() { check(kn_graph_capture_begin(graph, nullptr)); }

    // The first `owned` of the results are the caller's, to keep.
    void end(const OptionalTensors &values, int64_t owned, const std::vector<at::Tensor> &used)
    {
        check(kn_graph_capture_end(graph));
        for (const std::optional<at::Tensor> &value : values) {
            TORCH_CHECK(!value || !value->defined() || value->is_privateuseone(), "a result is on ", value->device());
            const bool is_owned = static_cast<int64_t>(results.size()) < owned;
            results.push_back(value && value->defined() ? std::optional(result_of(*value, used, is_owned))
                                                        : std::nullopt);
        }
    }

    void abort()
    {
        if (kn_graph_capture_end(graph) != KN_OK)
            kn_error_clear();
    }

    // None: it does not fit these inputs.
    std::optional<OptionalTensors> run(const std::vector<at::Tensor> &tensors)
    {
        const std::lock_guard<std::mutex> hold(lock);
        if (!fits(tensors))
            return std::nullopt;
        const at::AutoDispatchBelowADInplaceOrView below;
        follow_last();
        for (Kept &kept : all_kept)
            if (!kept.is_owned)
                move_away(kept);
        for (size_t i = 0; i < inputs.size(); i++)
            if (inputs[i].copy.defined())
                inputs[i].copy.copy_(tensors[i]);
        if (!replay())
            return std::nullopt;
        for (size_t i = 0; i < inputs.size(); i++)
            if (inputs[i].is_written && !tensors[i].is_inference())
                tensors[i].unsafeGetTensorImpl()->bump_version();
        return give(tensors);
    }

    // Which inputs used in place are not where they were?
    std::vector<int64_t> moved(const std::vector<at::Tensor> &tensors)
    {
        std::vector<int64_t> found;
        for (size_t i = 0; i < inputs.size(); i++)
            if (!inputs[i].copy.defined() && !places[i].is_of(tensors[i]))
                found.push_back(static_cast<int64_t>(i));
        return found;
    }

    int64_t commands() { return kn_graph_command_count(graph); }

  private:
    bool fits(const std::vector<at::Tensor> &tensors) const
    {
        for (size_t i = 0; i < inputs.size(); i++)
            if (!inputs[i].layout.has_shape_of(tensors[i]) ||
                (!inputs[i].copy.defined() && address_of(tensors[i]) != places[i].address))
                return false;
        return true;
    }

    // The recording's memory was last used on that stream.
    void follow_last()
    {
        kn_stream *const stream = check(kn_stream_current(device));
        if (last != nullptr && last != stream)
            check(kn_stream_wait_stream(stream, last));
        last = stream;
    }

    // False: memory used in place has been freed, and other memory is at its address now.
    bool replay()
    {
        const kn_status status = kn_graph_replay(graph);
        if (status == KN_ERR_STATE) {
            kn_error_clear();
            return false;
        }
        check(status);
        return true;
    }

    static void give_memory(c10::StorageImpl *storage, const c10::Storage &from)
    {
        c10::DataPtr memory = allocate(from.nbytes(), from.device());
        copy_bytes(memory, from.data_ptr(), from.nbytes());
        storage->set_data_ptr_noswap(std::move(memory));
    }

    static void move_away(Kept &kept)
    {
        if (!kept.given)
            return;
        const c10::intrusive_ptr<c10::StorageImpl> given = kept.given->lock();
        if (given && given->data_ptr().get() == kept.storage.data_ptr().get())
            give_memory(given.get(), kept.storage);
    }

    c10::Storage give_storage(Kept &kept)
    {
        size_t offset = 0;
        const size_t bytes = kept.storage.nbytes();
        const c10::Device device = kept.storage.device();
        auto storage = c10::make_intrusive<c10::StorageImpl>(
            c10::StorageImpl::use_byte_size_t(), bytes,
            bytes > 0 ? data_ptr_of(memory_at(kept.storage.data_ptr(), &offset), device) : allocate(0, device),
            kept.is_owned ? device_allocator() : nullptr, kept.is_owned); // none: see is_of_recording
        if (kept.is_owned && bytes > 0)
            give_memory(storage.get(), kept.storage);
        kept.given.emplace(storage);
        return c10::Storage(std::move(storage));
    }

    OptionalTensors give(const std::vector<at::Tensor> &tensors)
    {
        std::vector<c10::Storage> storages;
        for (Kept &kept : all_kept)
            storages.push_back(give_storage(kept));
        OptionalTensors given;
        for (const std::optional<Result> &result : results) {
            if (!result)
                given.push_back(std::nullopt);
            else if (result->input < 0)
                given.push_back(result->layout.on(storages[result->kept], result->layout.offset));
            else
                given.push_back(on_input(*result, tensors[result->input]));
        }
        return given;
    }

    static at::Tensor on_input(const Result &result, const at::Tensor &input)
    {
        const int64_t at = input.storage_offset() * static_cast<int64_t>(input.element_size()) + result.layout.offset;
        return result.layout.on(input.storage(), at);
    }

    Result result_of(const at::Tensor &value, const std::vector<at::Tensor> &used, bool is_owned)
    {
        Result result{Layout(value), -1, -1};
        for (size_t i = 0; i < used.size(); i++)
            if (used[i].storage().is_alias_of(value.storage())) {
                result.input = static_cast<int>(i);
                result.layout.offset -= used[i].storage_offset() * static_cast<int64_t>(used[i].element_size());
                return result;
            }
        for (size_t i = 0; i < all_kept.size(); i++)
            if (all_kept[i].is_owned == is_owned && all_kept[i].storage.is_alias_of(value.storage()))
                result.kept = static_cast<int>(i);
        if (result.kept < 0) {
            result.kept = static_cast<int>(all_kept.size());
            all_kept.push_back({value.storage(), is_owned, std::nullopt});
        }
        return result;
    }

    kn_graph *const graph;
    kn_device *const device = check(kn_device_current());
    kn_stream *last = nullptr;
    std::mutex lock;
    std::vector<Place> places;
    std::vector<Input> inputs;
    std::vector<std::optional<Result>> results;
    std::vector<Kept> all_kept;
};

TORCH_LIBRARY_FRAGMENT(koine, m)
{
    m.class_<Recording>("Recording")
        .def(torch::init<>())
        .def("note", &Recording::note)
        .def("stay", &Recording::stay)
        .def("prepare", &Recording::prepare)
        .def("begin", &Recording::begin)
        .def("end", &Recording::end)
        .def("abort", &Recording::abort)
        .def("run", &Recording::run)
        .def("moved", &Recording::moved)
        .def("commands", &Recording::commands);
}

} // namespace koine
