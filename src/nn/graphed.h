/* nn/graphed.h - modules whose passes are replayed; koine/nn.h tells how they are made. */
#ifndef KN_NN_GRAPHED_H
#define KN_NN_GRAPHED_H

#include "nn/module.h"

/* The module's forward pass, replayed where its graphs are for the mode it is in. */
kn_tensor *kn_graphed_forward(kn_module *module, kn_tensor *x);

void kn_graphed_release(kn_graphed *graphed); /* NULL allowed */

#endif
