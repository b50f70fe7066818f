/* cli/op_samples.h - small inputs and parameters for each operator of the list, with which it computes something: what
 * `koine doctor` runs, and the tests that go through the whole list. */
#pragma once

#include <koine/operators.h>

#define KN_SAMPLE_INPUTS 16

typedef struct kn_op_sample {
    int num_inputs;
    kn_tensor *inputs[KN_SAMPLE_INPUTS]; /* owned by the scope; NULL: left out */
    void *params;                        /* NULL: none */
} kn_op_sample;

/* Floating inputs have `dtype`, values between 0.25 and 1.25 from the device's generator, and require gradients if
 * `gradients`. Free the parameters with kn_op_sample_free. */
kn_status kn_op_sample_make(kn_op_sample *sample, const kn_op *op, kn_dtype dtype, bool gradients);
void kn_op_sample_free(kn_op_sample *sample);

/* A row of the table. */
typedef struct kn_op_sample_row {
    const char *op, *inputs, *params;
} kn_op_sample_row;
const kn_op_sample_row *kn_op_sample_find(const char *op); /* NULL: the operator has none */
