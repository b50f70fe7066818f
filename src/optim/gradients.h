/* optim/gradients.h - launches over many tensors, eight at a time (cl/optim/gradients.cl). */
#pragma once

#include <koine/clip_grad.h>

#include "tensor/tensor.h"

/* Tensors of one device, contiguous: copies where they are not. */
typedef struct kn_many {
    kn_tensor **tensors, **copies; /* borrowed; one reference each */
    int count;
    kn_device *device;
    bool has_f64;
} kn_many;

/* The tensors that are not NULL; NULL for those without a gradient. `function` for messages. Free even on failure. */
kn_status kn_many_gradients(kn_many *many, const char *function, kn_tensor *const *parameters, int count);
kn_status kn_many_tensors(kn_many *many, const char *function, kn_tensor *const *tensors, int count);
void kn_many_free(kn_many *many);

/* Runs a kernel that changes the tensors, with `args` after the slots, and writes copies back. `real`, if not NULL,
 * becomes the last argument: a number in the type that each tensor is computed in. */
kn_status kn_many_change(const kn_many *many, const char *kernel, const char *operation, const kn_arg *args,
                         int num_args, const double *real);

/* The p-norm of all, a new tensor without dimensions. */
kn_status kn_many_norm(const kn_many *many, double p, kn_tensor **norm);
