/* koine/pad.h - padding by constants or by the tensor's own elements. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_PAD_H
#define KOINE_PAD_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef enum kn_padding_mode {
    KN_PAD_CONSTANT,  /* a value; for convolutions zeros */
    KN_PAD_REFLECT,   /* mirrored at the first and last element, which are not repeated: cb|abc|ba */
    KN_PAD_REPLICATE, /* the first and last element: aa|abc|cc */
    KN_PAD_CIRCULAR   /* from the other end: bc|abc|ab */
} kn_padding_mode;

typedef struct kn_pad_params {
    kn_padding_mode mode; /* default KN_PAD_CONSTANT */
    kn_scalar value;      /* of KN_PAD_CONSTANT; default 0: .value = KN_NUMBER(1.5) */
} kn_pad_params;
#define KN_PAD_DEFAULTS .mode = KN_PAD_CONSTANT
KN_API kn_pad_params kn_pad_params_init(void);

/* torch.nn.functional.pad: `pad` has two numbers per dimension, from the last one on: {left, right, top, bottom, ...},
 * for at most four dimensions. Negative ones crop. Any dtype; the gradient of an element is the sum over all places
 * that it was copied to. KN_ERR_SHAPE if nothing would remain, or for more than there is to copy: reflection takes less
 * than the size, circular padding at most the size.
 *
 *     kn_pad(x, KN_SHAPE(1, 1))                                     // a column of zeros on either side
 *     kn_pad(x, KN_SHAPE(2, 2, 1, 1), .mode = KN_PAD_REFLECT) */
KN_API kn_tensor *kn_pad_with(kn_tensor *x, int count, const int64_t *pad, const kn_pad_params *params);
#define kn_pad(x, pad, ...) KN_CALL(kn_pad_with(x, pad, &(kn_pad_params){KN_PAD_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
