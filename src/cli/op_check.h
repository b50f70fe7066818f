/* cli/op_check.h - holds every operation that runs on this thread against its plain C reference, as `koine doctor`
 * does. */
#ifndef KN_CLI_OP_CHECK_H
#define KN_CLI_OP_CHECK_H

#include <koine/koine.h>

#include "autograd/op.h"

/* What was found. Start with {0}. */
typedef struct kn_op_check {
    int checked;          /* applications compared */
    char wrong[32];       /* the first op whose values differ; "" while there is none */
    char difference[160]; /* "element 7 is 1.5, should be 1.25" */

    /* Of the applications under way: an op's forward may apply others. */
    int depth;
    struct kn_op_snapshot {
        const kn_call *call;
        kn_tensor *inputs[KN_OP_MAX_INPUTS]; /* as they were before forward, on the host, in f64 or i64 */
    } stack[8];
} kn_op_check;

/* Watches this thread's ops until kn_op_check_end. */
void kn_op_check_begin(kn_op_check *check);
void kn_op_check_end(kn_op_check *check);

#endif
