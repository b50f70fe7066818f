/* koine/io.h - tensor files. A malformed file is KN_ERR_FORMAT; the message has the file, the offset and what was
 * expected. Only regular files are read: pipes and devices are KN_ERR_IO. Files are written to a temporary name,
 * flushed and renamed: a failure leaves the old file unchanged. A symbolic link as path must lead to a regular file. */
#ifndef KOINE_IO_H
#define KOINE_IO_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* An idx file (MNIST's format), gzipped or plain: a host tensor of dtype uint8, int8, int16, int32, float32 or
 * float64. */
KN_API kn_tensor *kn_load_idx(const char *path);

/* A NumPy .npy file, versions 1.0 to 3.0, both byte orders, Fortran order: a contiguous host tensor. uint16 widens to
 * int32, uint32 and uint64 to int64. */
KN_API kn_tensor *kn_load_npy(const char *path);
KN_API kn_status kn_save_npy(const char *path, const kn_tensor *tensor); /* any device */

/* A safetensors file: tensors by name, and text by key ("metadata"). Free it with kn_tensor_file_free. */
typedef struct kn_tensor_file kn_tensor_file;
/* of host tensors; unsigned integers widen as in .npy files. NULL with an error */
KN_API kn_tensor_file *kn_load_safetensors(const char *path);
KN_API kn_tensor_file *kn_tensor_file_new(void);
KN_API void kn_tensor_file_free(kn_tensor_file *file);
KN_API int kn_tensor_file_count(const kn_tensor_file *file);
KN_API const char *kn_tensor_file_name(const kn_tensor_file *file, int index);
KN_API kn_tensor *kn_tensor_file_at(const kn_tensor_file *file, int index); /* borrowed */
/* borrowed; NULL, without an error, if absent */
KN_API kn_tensor *kn_tensor_file_get(const kn_tensor_file *file, const char *name);
/* keeps a reference; names must be unique */
KN_API kn_status kn_tensor_file_put(kn_tensor_file *file, const char *name, kn_tensor *tensor);
KN_API const char *kn_tensor_file_metadata(const kn_tensor_file *file, const char *key); /* NULL if absent */
KN_API kn_status kn_tensor_file_set_metadata(kn_tensor_file *file, const char *key, const char *value);
KN_API kn_status kn_save_safetensors(const char *path, const kn_tensor_file *file);

KN_END_DECLS

#endif
