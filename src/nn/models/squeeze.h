/* nn/models/squeeze.h - parts that mobile networks share: squeeze and excitation. */
#pragma once

#include "nn/models/build.h"

/* Hu et al., "Squeeze-and-Excitation Networks" (2018): x gate(fc2(activation(fc1(mean of x)))), by channel. */
kn_module *kn_model_squeeze(int64_t channels, int64_t squeezed, kn_module *(*activation)(void),
                            kn_module *(*gate)(void));

/* The multiple of `divisor` nearest to `value`, at least 90 % of it. */
int64_t kn_model_divisible(double value, int64_t divisor);
