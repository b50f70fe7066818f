/* cli/op_check.h - checks every operation that runs on this thread against its plain C reference; used by `koine
 * doctor`. */
#pragma once

#include <koine/koine.h>

#include "autograd/op.h"

/* The findings. Start with {0}. */
typedef struct kn_op_check {
    int checked;          /* operations compared */
    char wrong[32];       /* the first op with a wrong value; "" if none */
    char difference[160]; /* "element 7 of 12 is 1.5, expected 1.25" */

    /* The operations in progress: an op's forward may call others. */
    int depth;
    struct kn_op_snapshot {
        const kn_call *call;
        kn_tensor **inputs; /* as they were before forward, on the host, in f64 or i64 */
        int num_inputs;
    } stack[8];
} kn_op_check;

/* Checks this thread's ops until kn_op_check_end. */
void kn_op_check_begin(kn_op_check *check);
void kn_op_check_end(kn_op_check *check);
