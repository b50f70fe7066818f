/* io/checkpoint.h - the state of modules and optimizers in files of tensors, several of them side by side under
 * prefixes. */
#ifndef KN_IO_CHECKPOINT_H
#define KN_IO_CHECKPOINT_H

#include <koine/io.h>
#include <koine/nn.h>
#include <koine/optim.h>

#include "nn/tensor_list.h"

/* Puts the state, as host tensors, into the file: `prefix` before each name ("" for PyTorch's own names). */
kn_status kn_checkpoint_put(kn_tensor_file *file, const char *prefix, const char *name, kn_tensor *tensor);
kn_status kn_checkpoint_put_list(kn_tensor_file *file, const char *prefix, const kn_tensor_list *list);
kn_status kn_checkpoint_put_module(kn_tensor_file *file, const char *prefix, kn_module *module);
kn_status kn_checkpoint_put_optim(kn_tensor_file *file, const char *prefix, kn_optim *optim);

/* Restores it, strictly, from the file's tensors whose names start with `prefix`. `path` is for messages. Nothing is
 * changed on failure. */
kn_status kn_checkpoint_get_module(const kn_tensor_file *file, const char *prefix, kn_module *module, const char *path);
kn_status kn_checkpoint_get_optim(const kn_tensor_file *file, const char *prefix, kn_optim *optim, const char *path);

#endif
