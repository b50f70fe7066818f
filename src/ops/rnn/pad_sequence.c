/* ops/rnn/pad_sequence.c - torch.nn.utils.rnn.pad_sequence. */
#include <koine/join.h>
#include <koine/rnn.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

/* x with `steps` elements along dimension 0. */
static kn_tensor *padded(kn_tensor *x, int64_t steps, double value)
{
    int64_t shape[KN_MAX_DIMS];

    if (x->shape[0] == steps)
        return x;
    memcpy(shape, x->shape, sizeof shape);
    shape[0] = steps - x->shape[0];
    kn_tensor *rest = kn_full_with(x->ndim, shape, kn_scalar_real(value),
                                   &(kn_tensor_options){.dtype = x->dtype, .device = kn_device_of(x)});
    return kn_cat((kn_tensor *[]){x, rest}, 2, 0);
}

/* The most steps of any sequence. */
static kn_status longest_of(int64_t *longest, kn_tensor *const *sequences, int count)
{
    *longest = 0;
    if (!sequences || count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "pad_sequence: at least one sequence is needed");
    for (int i = 0; i < count; i++) {
        KN_TRY(kn_check_tensor("pad_sequence", "sequences", sequences[i]));
        if (sequences[i]->ndim < 1)
            return kn_fail(KN_ERR_SHAPE, "pad_sequence: sequence %d has no dimensions", i);
        *longest = sequences[i]->shape[0] > *longest ? sequences[i]->shape[0] : *longest;
    }
    return KN_OK;
}

kn_tensor *kn_pad_sequence(kn_tensor *const *sequences, int count, bool batch_first, double padding_value)
{
    int64_t longest;

    if (longest_of(&longest, sequences, count) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor **all = kn_malloc((size_t)count * sizeof *all);
    if (!all)
        return kn_error_make_sticky();
    for (int i = 0; i < count; i++)
        all[i] = padded(sequences[i], longest, padding_value);
    kn_tensor *result = kn_stack(all, count, batch_first ? 0 : 1);
    kn_free(all);
    return result;
}
