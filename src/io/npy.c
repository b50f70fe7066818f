/* io/npy.c - NumPy's .npy files, versions 1.0 to 3.0: magic, version, header length, header text, elements. */
#include <inttypes.h>
#include <koine/io.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/load.h"
#include "io/npy_header.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
/* Bytes: far more than plain element types need. Only structured types, which tensors cannot hold, have longer ones. */
#define HEADER_LIMIT 65536

/* --- reading ---------------------------------------------------------------------------------- */

/* Reads magic, version and header length; the header text starts at the source's offset then. */
static kn_status read_preamble(kn_source *source, size_t *header_length)
{
    unsigned char bytes[MAGIC_BYTES + 2], length[4] = {0};
    KN_TRY(kn_source_read_exactly(source, bytes, sizeof(bytes), "the .npy magic number and version"));
    if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return kn_source_fail(source, 0, "expected \\x93NUMPY, the start of a .npy file");
    unsigned major = bytes[MAGIC_BYTES], minor = bytes[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0)
        return kn_source_fail(source, MAGIC_BYTES, "expected version 1.0, 2.0 or 3.0, found %u.%u", major, minor);
    KN_TRY(kn_source_read_exactly(source, length, major == 1 ? 2 : 4, "the header's length"));
    *header_length = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (*header_length > HEADER_LIMIT)
        return kn_source_fail(source, MAGIC_BYTES + 2, "expected a header of at most %d bytes, found a length of %zu",
                              HEADER_LIMIT, *header_length);
    return KN_OK;
}

static kn_status read_header(kn_source *source, kn_npy_header *header)
{
    size_t length = 0;
    KN_TRY(read_preamble(source, &length));
    uint64_t start = kn_source_offset(source);
    unsigned char *text = NULL;
    KN_TRY(kn_source_read_block(source, &text, length, "header"));
    kn_npy_error error;
    kn_status status = KN_OK;
    if (!kn_npy_parse_header(header, (const char *)text, length, &error))
        status = kn_source_fail(source, start + error.position, "expected %s", error.expected);
    kn_free(text);
    return status;
}

/* Copies a column-major array into row-major order. `index` visits the result's elements in order; `from` follows it in
 * the source. */
static void transpose(unsigned char *to, const unsigned char *from, const kn_npy_header *header, uint64_t count,
                      size_t size)
{
    int64_t index[KN_MAX_DIMS] = {0}, strides[KN_MAX_DIMS], position = 0;
    for (int dim = 0; dim < header->ndim; dim++)
        strides[dim] = dim == 0 ? 1 : strides[dim - 1] * header->shape[dim - 1];
    for (uint64_t i = 0; i < count; i++) {
        memcpy(to + i * size, from + (size_t)position * size, size);
        for (int dim = header->ndim - 1; dim >= 0; dim--) {
            position += strides[dim];
            if (++index[dim] < header->shape[dim])
                break;
            position -= strides[dim] * header->shape[dim];
            index[dim] = 0;
        }
    }
}

/* Puts the elements of `stored` into row-major order; the block is replaced. */
static kn_status to_row_major(unsigned char **stored, const kn_npy_header *header, uint64_t bytes)
{
    size_t size = kn_element_size(header->element);
    unsigned char *ordered = kn_malloc((size_t)bytes);
    if (!ordered)
        return KN_ERR_MEMORY;
    transpose(ordered, *stored, header, bytes / size, size);
    kn_free(*stored);
    *stored = ordered;
    return KN_OK;
}

static kn_status read_tensor(kn_tensor **tensor, kn_source *source)
{
    kn_npy_header header = {0};
    uint64_t bytes = 0;
    KN_TRY(read_header(source, &header));
    uint64_t start = kn_source_offset(source);
    if (!kn_elements_bytes(&bytes, header.ndim, header.shape, kn_element_size(header.element)))
        return kn_source_fail(source, 0, "expected a shape whose product fits in memory");
    unsigned char *stored = NULL;
    KN_TRY(kn_source_read_block(source, &stored, bytes, "elements, as given by the shape"));
    kn_status status = kn_source_expect_end(source, "the elements");
    if (status == KN_OK && header.fortran_order && header.ndim > 1 && bytes > 0)
        status = to_row_major(&stored, &header, bytes);
    if (status == KN_OK)
        status = kn_tensor_from_stored(tensor, source, start, stored, header.element, header.swap, header.ndim,
                                       header.shape);
    kn_free(stored);
    return status;
}

kn_tensor *kn_load_npy(const char *path) { return kn_load_tensor("kn_load_npy", path, false, read_tensor); }

/* --- writing ---------------------------------------------------------------------------------- */

/* Everything before the elements. Version 1.0 suffices: the header of up to 8 sizes always fits its 16-bit length. */
static char *format_preamble(const kn_tensor *tensor, size_t *length)
{
    kn_dtype dtype = kn_dtype_of(tensor);
    char order = kn_dtype_size(dtype) == 1 ? '|' : kn_little_endian() ? '<' : '>';
    kn_text text = {0};
    kn_text_format(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order,
                   kn_element_npy_name(kn_element_of_dtype(dtype)));
    for (int dim = 0; dim < kn_ndim(tensor); dim++)
        kn_text_format(&text, "%" PRId64 "%s", kn_size(tensor, dim),
                       kn_ndim(tensor) == 1        ? ","
                       : dim + 1 < kn_ndim(tensor) ? ", "
                                                   : "");
    kn_text_append(&text, "), }");
    while (!text.failed && (MAGIC_BYTES + 4 + text.length + 1) % 64 !=
                               0) /* NumPy aligns the elements to 64 bytes, the newline included */
        kn_text_append(&text, " ");
    kn_text_append(&text, "\n");
    kn_text whole = {0};
    const unsigned char version_and_length[4] = {1, 0, (unsigned char)(text.length & 0xff),
                                                 (unsigned char)(text.length >> 8)};
    kn_text_append_bytes(&whole, MAGIC, MAGIC_BYTES);
    kn_text_append_bytes(&whole, (const char *)version_and_length, sizeof(version_and_length));
    if (!text.failed)
        kn_text_append_bytes(&whole, text.data, text.length);
    whole.failed = whole.failed || text.failed;
    kn_text_free(&text);
    *length = whole.length;
    return kn_text_finish(&whole);
}

static kn_status write_file(const char *path, const char *preamble, size_t length, const void *elements, size_t bytes)
{
    kn_atomic_file file;
    KN_TRY(kn_file_begin(&file, path));
    kn_status status = kn_file_write(&file, preamble, length);
    if (status == KN_OK)
        status = kn_file_write(&file, elements, bytes);
    return kn_file_end(&file, status);
}

kn_status kn_save_npy(const char *path, const kn_tensor *tensor)
{
    if (!path || !tensor)
        return kn_fail_argument_null("kn_save_npy", path ? "tensor" : "path");
    if (!kn_element_npy_name(kn_element_of_dtype(kn_dtype_of(tensor))))
        return kn_fail(KN_ERR_DTYPE,
                       "kn_save_npy: NumPy has no %s: convert the tensor to float32 with kn_to_dtype, or "
                       "save it as safetensors",
                       kn_dtype_name(kn_dtype_of(tensor)));
    size_t bytes = (size_t)kn_numel(tensor) * kn_dtype_size(kn_dtype_of(tensor)), length = 0;
    void *elements = kn_malloc(bytes);
    char *preamble = elements ? format_preamble(tensor, &length) : NULL;
    kn_status status = preamble ? kn_read(tensor, elements, bytes) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = write_file(path, preamble, length, elements, bytes);
    kn_free(preamble);
    kn_free(elements);
    return status;
}
