// generator.cpp - torch.Generator('koine'), and the default generators.
#include "generator.h"

#include "tensor.h"

#include <koine/generator.h>
#include <koine/random.h>

#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include <cstring>
#include <vector>

namespace koine
{

// Owns its kn_generator, unless that is a device's default one, which kn_generator_free leaves alone.
class GeneratorImpl final : public c10::GeneratorImpl
{
  public:
    GeneratorImpl(c10::Device device, kn_generator *generator)
        : c10::GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), generator(check(generator))
    {
    }
    ~GeneratorImpl() override { kn_generator_free(generator); }

    void set_current_seed(uint64_t seed) override { check(kn_generator_manual_seed(generator, seed)); }
    uint64_t current_seed() const override { return kn_generator_initial_seed(generator); }
    uint64_t seed() override
    {
        uint64_t seed = 0;
        check(kn_generator_seed(generator, &seed));
        return seed;
    }

    // PyTorch counts random words, Koine blocks of four.
    void set_offset(uint64_t offset) override
    {
        TORCH_CHECK(offset % 4 == 0, "the offset of a generator is a multiple of 4, not ", offset);
        check(kn_generator_set_offset(generator, offset / 4));
    }
    uint64_t get_offset() const override { return kn_generator_offset(generator) * 4; }

    void set_state(const c10::TensorImpl &state) override
    {
        TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                        state.numel() == KN_RNG_STATE_SIZE && state.is_contiguous(),
                    "the state of a generator on koine is a ByteTensor of ", KN_RNG_STATE_SIZE, " elements on the CPU");
        check(kn_generator_set_state(generator, static_cast<const uint8_t *>(state.data())));
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override
    {
        at::Tensor state = at::empty({KN_RNG_STATE_SIZE}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
        check(kn_generator_get_state(generator, state.mutable_data_ptr<uint8_t>()));
        return state.getIntrusivePtr();
    }

    GeneratorImpl *clone_impl() const override { return new GeneratorImpl(device(), kn_generator_clone(generator)); }

    kn_generator *const generator;
};

const at::Generator &default_generator(c10::DeviceIndex index)
{
    static const std::vector<at::Generator> all = [] {
        std::vector<at::Generator> made;
        for (c10::DeviceIndex i = 0; i < device_count(); i++) {
            const c10::Device device(c10::kPrivateUse1, i);
            made.push_back(at::make_generator<GeneratorImpl>(device, kn_generator_default(device_of(device))));
        }
        return made;
    }();
    if (index < 0)
        index = current_device();
    device_of(c10::Device(c10::kPrivateUse1, index)); // or says that there is none
    return all[index];
}

at::Generator new_generator(c10::DeviceIndex index)
{
    const c10::Device device(c10::kPrivateUse1, index < 0 ? current_device() : index);
    return at::make_generator<GeneratorImpl>(device, kn_generator_new(device_of(device)));
}

kn_generator *generator_of(const std::optional<at::Generator> &generator, c10::Device device)
{
    if (!generator.has_value() || !generator->defined())
        return check(kn_generator_default(device_of(device)));
    TORCH_CHECK(generator->device().is_privateuseone(), "expected a generator of the device koine, not of ",
                generator->device());
    return static_cast<GeneratorImpl *>(generator->unsafeGetGeneratorImpl())->generator;
}

} // namespace koine
