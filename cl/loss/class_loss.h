/* loss/class_loss.h - losses of class scores (loss/class_loss.clh). */
#ifndef KN_LOSS_CLASS_LOSS_H
#define KN_LOSS_CLASS_LOSS_H

#include "common/shared.h"

typedef struct kn_class_loss_layout {
    kn_long rows, classes, inner, ignore, rows_per_block, blocks;
    kn_int logits, reduction, has_weight, unused;
} kn_class_loss_layout;
KN_SHARED_SIZE(kn_class_loss_layout, 6 * 8 + 4 * 4);

#endif
