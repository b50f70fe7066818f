/* ops/gemm/instructions.h - instructions for products that kernels contain as assembly: whether the stream's device
 * computes with them what the kernels expect. Checked at the first call for the device, which waits, by comparing
 * products with the host's. If they do not, a warning is logged once. */
#pragma once

#include "ops/dispatch/trial.h"

typedef enum kn_instruction {
    KN_TENSOR_CORES_TF32,
    KN_TENSOR_CORES_F16,
    KN_PAIRS_BF16, /* of a CPU */
    KN_INSTRUCTIONS
} kn_instruction;

bool kn_tensor_cores_work(kn_stream *stream); /* in TF32 */
bool kn_tensor_cores_work_in_f16(kn_stream *stream);
bool kn_pairs_work(kn_stream *stream); /* also true if the device has no such instruction, and kernels use none */

/* The trial that decides it, in this process: for `koine --trial NAME`. */
kn_verdict kn_instruction_try(kn_device *device, kn_instruction instruction);
const char *kn_instruction_name(kn_instruction instruction);
