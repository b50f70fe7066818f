/* koine/nn/container.h - containers of modules. Constructors as in koine/module.h. */
#ifndef KOINE_NN_CONTAINER_H
#define KOINE_NN_CONTAINER_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* Applies its children, named "0", "1", ..., in order. Takes ownership of all of them, also on failure. */
KN_API kn_module *kn_nn_sequential_of(kn_module *const *children, int count);
#define kn_nn_sequential(...)                                                                                          \
    kn_nn_sequential_of((kn_module *const[]){__VA_ARGS__},                                                             \
                        (int)(sizeof((kn_module *[]){__VA_ARGS__}) / sizeof(kn_module *)))

/* Appends a child with a given name ("conv1"), as Sequential.add_module; kn_nn_sequential_of(NULL, 0) is an empty
 * Sequential. Takes ownership of the child, also on failure. */
KN_API kn_status kn_nn_add_module(kn_module *sequential, const char *name, kn_module *child);

KN_END_DECLS

#endif
