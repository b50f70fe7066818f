// generator.h - torch.Generator('koine'), and the default generators.
#pragma once

#include <ATen/core/Generator.h>

namespace koine
{

// Of the device with that index; -1: the current one.
const at::Generator &default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

} // namespace koine
