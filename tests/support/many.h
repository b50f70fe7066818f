/* support/many.h - a module with several inputs and outputs, for tests. */
#pragma once

#include <koine/koine.h>

/* Inputs x [n, width], scale [width] or [n, width], and perhaps shift [n, width]; outputs gate(x) * scale + shift and
 * x * scale, where gate is a Linear, "gate", without bias. Its weight starts as twice the identity. */
kn_module *gate_module(int64_t width);
