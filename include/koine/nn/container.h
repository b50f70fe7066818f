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

/* Modules in a list, named "0", "1", ..., which has no forward of its own: kn_module_child(list, i), and
 * kn_module_child_count. Takes ownership of all of them, also on failure. */
KN_API kn_module *kn_nn_module_list_of(kn_module *const *modules, int count);
#define kn_nn_module_list(...)                                                                                         \
    kn_nn_module_list_of((kn_module *const[]){__VA_ARGS__},                                                            \
                         (int)(sizeof((kn_module *[]){__VA_ARGS__}) / sizeof(kn_module *)))

/* Adds a module at the end of a ModuleList or Sequential, with the next number as its name. Takes ownership. */
KN_API kn_status kn_nn_append(kn_module *list, kn_module *module);

/* Modules with names, without a forward of its own: kn_module_named_child(dict, "encoder"); kn_nn_add_module adds
 * another. Takes ownership of all of them, also on failure. */
KN_API kn_module *kn_nn_module_dict_of(const char *const *names, kn_module *const *modules, int count);

/* The child of that name, borrowed; NULL with an error that names the module. Of any module. */
KN_API kn_module *kn_module_named_child(kn_module *module, const char *name);

/* Parameters in a list, named "0", "1", ...: kn_module_get(list, "0"), kn_module_parameters(list). A module that uses
 * them registers the container as a child. As kn_module_register_parameter, the container keeps its own references. */
KN_API kn_module *kn_nn_parameter_list_of(kn_tensor *const *tensors, int count);
#define kn_nn_parameter_list(...)                                                                                      \
    kn_nn_parameter_list_of((kn_tensor *const[]){__VA_ARGS__},                                                         \
                            (int)(sizeof((kn_tensor *[]){__VA_ARGS__}) / sizeof(kn_tensor *)))
KN_API kn_tensor *kn_nn_append_parameter(kn_module *list, kn_tensor *tensor); /* returns it; NULL with an error */

/* Parameters with names: kn_module_get(dict, "scale"); kn_module_register_parameter adds another. */
KN_API kn_module *kn_nn_parameter_dict_of(const char *const *names, kn_tensor *const *tensors, int count);

KN_END_DECLS

#endif
