/* koine/nn/shape.h - layers that only change shapes. Constructors as in koine/module.h. */
#ifndef KOINE_NN_SHAPE_H
#define KOINE_NN_SHAPE_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_flatten(void); /* from dimension 1 on */

KN_END_DECLS

#endif
