/* io/checkpoint.h - the state of modules and optimizers in tensor files; several can share a file under different
 * prefixes. */
#pragma once

#include <koine/io.h>
#include <koine/module.h>
#include <koine/optim.h>

#include "nn/tensor_list.h"

/* Adds the state, as host tensors, to the file, with `prefix` before each name ("" for PyTorch's names). */
kn_status kn_checkpoint_put(kn_tensor_file *file, const char *prefix, const char *name, kn_tensor *tensor);
kn_status kn_checkpoint_put_list(kn_tensor_file *file, const char *prefix, const kn_tensor_list *list);
kn_status kn_checkpoint_put_module(kn_tensor_file *file, const char *prefix, kn_module *module);
kn_status kn_checkpoint_put_optim(kn_tensor_file *file, const char *prefix, kn_optim *optim);

/* The metadata "share" of a file with one rank's part of an optimizer's state: its rank and their number. */
#define KN_SHARE_FORMAT "%d of %d"

/* Restores it, strictly, from the file's tensors whose names start with `prefix`. `path` is for messages. A failure
 * changes nothing. */
/* The tensors whose names start with `prefix`, without it; free with kn_tensor_list_free. */
kn_status kn_checkpoint_get_list(const kn_tensor_file *file, const char *prefix, kn_tensor_list *list);
kn_status kn_checkpoint_get_module(const kn_tensor_file *file, const char *prefix, kn_module *module, const char *path);
kn_status kn_checkpoint_get_optim(const kn_tensor_file *file, const char *prefix, kn_optim *optim, const char *path);
/* The same, with the tensors of `list`, which may come from several files; all else is this file's. */
kn_status kn_checkpoint_get_optim_list(const kn_tensor_file *file, const char *prefix, const kn_tensor_list *list,
                                       kn_optim *optim, const char *path);
