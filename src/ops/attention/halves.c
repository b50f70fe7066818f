/* ops/attention/halves.c - attention of float16 and bfloat16, computed in float32 by implementations that do not read
 * halves. */
#include "ops/attention/attention.h"

enum { GRADIENT = KN_ATTENTION_OPERANDS, MASK, FIRST_WRITTEN, TENSORS = FIRST_WRITTEN + KN_ATTENTION_OPERANDS };

/* Where the problem has its tensors of halves: three operands, then the above, then three gradients. */
static kn_tensor **slot(kn_attention_problem *p, int i)
{
    return i < KN_ATTENTION_OPERANDS ? &p->operands[i]
           : i == GRADIENT           ? &p->gradient
           : i == MASK               ? &p->mask
                                     : &p->gradients[i - FIRST_WRITTEN];
}

static kn_status widen(kn_attention_problem *wide, int i)
{
    kn_tensor *t = *slot(wide, i);
    *slot(wide, i) = NULL;
    if (!t)
        return KN_OK;
    if (i >= FIRST_WRITTEN)
        return kn_tensor_new(slot(wide, i), KN_F32, t->ndim, t->shape, t->storage->device);
    return kn_tensor_cast(slot(wide, i), t, KN_F32, t->storage->device);
}

kn_status kn_attention_in_f32(kn_stream *stream, const kn_attention_problem *problem, kn_implementation_run *run)
{
    kn_attention_problem wide = *problem, narrow = *problem;
    kn_status status = KN_OK;
    for (int i = 0; i < TENSORS; i++) {
        if (status == KN_OK)
            status = widen(&wide, i);
        else
            *slot(&wide, i) = NULL;
    }
    if (status == KN_OK)
        status = run(stream, &wide);
    for (int i = 0; i < TENSORS; i++) {
        if (status == KN_OK && *slot(&wide, i) && i >= FIRST_WRITTEN)
            status = kn_tensor_copy(*slot(&narrow, i), *slot(&wide, i));
        kn_release(*slot(&wide, i));
    }
    return status;
}
