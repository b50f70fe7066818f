/* ops/user/jit_source.h - from a user's function to kernels around it. */
#ifndef KN_OPS_USER_JIT_SOURCE_H
#define KN_OPS_USER_JIT_SOURCE_H

#include "ops/user/jit_parse.h"
#include "rt/user_source.h"

/* The kernel `jit_forward` (outputs, inputs, plan, numbers): see cl/user/elementwise.clh. */
kn_status kn_jit_write_forward(kn_user_source *source, const char *code, const kn_jit_signature *forward);

/* The kernel `jit_backward` (the wanted gradients of inputs, inputs, gradients of outputs, plan, numbers). Compiled
 * with JIT_WANTED, which has bit i set where the gradient of input i is wanted. */
kn_status kn_jit_write_backward(kn_user_source *source, const char *code, const kn_jit_signature *forward,
                                const char *derivative, const kn_jit_signature *backward);

#endif
