/* tensor/copy.c - copies between layouts and dtypes, fills, accumulation. copy_across.c copies between devices. */
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "loops/pointwise.h"
#include "loops/transpose.h"
#include "tensor/copy.h"
#include "tensor/element.h"
#include "tensor/host_copies.h"

/* --- two strided layouts of one shape, merged ------------------------------------------------- */

static kn_layout merged_layout(const kn_tensor *destination, const kn_tensor *source)
{
    kn_layout layout = {.ndim = source->ndim, .lanes = 2};
    memcpy(layout.shape, source->shape, sizeof layout.shape);
    memcpy(layout.strides[KN_TO], destination->strides, sizeof layout.strides[0]);
    memcpy(layout.strides[KN_FROM], source->strides, sizeof layout.strides[0]);
    kn_layout_sort(&layout);
    kn_layout_collapse(&layout);
    return layout;
}

/* Is each of them one row of elements? */
static bool is_in_a_row(const kn_layout *layout)
{
    return layout->ndim == 1 && layout->strides[KN_TO][0] == 1 && layout->strides[KN_FROM][0] == 1;
}

/* --- on one device ---------------------------------------------------------------------------- */

static kn_pointwise_code filling = {.name = "fill", .inputs = "", .numbers = "p", .values = {"p"}};
static kn_pointwise_code accumulating = {.name = "accumulate", .inputs = "ab", .values = {"a + b"}};

static kn_operand operand_of(const kn_tensor *t)
{
    kn_operand operand = {.buffer = t->storage->buffer, .offset = t->offset, .dtype = t->dtype};
    memcpy(operand.strides, t->strides, sizeof operand.strides);
    return operand;
}

static kn_pointwise_problem problem_of(kn_pointwise_code *code, kn_dtype dtype, const kn_tensor *output)
{
    kn_pointwise_problem p = {.code = code,
                              .compute = kn_compute_type(dtype),
                              .ndim = output->ndim,
                              .num_outputs = 1,
                              .outputs = {operand_of(output)}};
    memcpy(p.shape, output->shape, sizeof p.shape);
    return p;
}

/* Drivers of CPU devices copy and fill with one thread, and are slow with patterns of more than a byte
 * (docs/platforms.md): from so many bytes on a kernel is worth its launch. Its elements are integers, which are copied
 * bit by bit. LONG_CLEAR is for bytes that are all the same; what is larger than the caches memset stores past them. */
enum { LONG_FILL = 1 << 15, LONG_CLEAR = 1 << 21, LONG_COPY = 1 << 18 };

static kn_dtype integer_of(size_t size) { return size == 1 ? KN_U8 : size == 2 ? KN_I16 : size == 4 ? KN_I32 : KN_I64; }

static kn_operand in_a_row(const kn_tensor *t)
{
    return (kn_operand){.buffer = t->storage->buffer,
                        .offset = t->offset,
                        .dtype = integer_of(kn_tensor_element_size(t)),
                        .strides = {1}};
}

/* `source` NULL: `bits` into each element. */
static kn_status run_in_a_row(kn_stream *stream, kn_tensor *destination, const kn_tensor *source, int64_t count,
                              int64_t bits)
{
    kn_pointwise_problem p = {.code = source ? &kn_copying : &filling,
                              .compute = integer_of(kn_tensor_element_size(destination)),
                              .ndim = 1,
                              .shape = {count},
                              .num_outputs = 1,
                              .outputs = {in_a_row(destination)},
                              .num_inputs = source ? 1 : 0};
    if (source)
        p.inputs[0] = in_a_row(source);
    else
        p.numbers[0] = kn_scalar_int(bits);
    return kn_pointwise_enqueue(stream, &p);
}

static kn_status copy_in_a_row(kn_stream *stream, kn_tensor *destination, const kn_tensor *source, int64_t count)
{
    const size_t size = kn_tensor_element_size(source), bytes = (size_t)count * size;
    if (kn_tensor_limits(source)->is_cpu && bytes >= LONG_COPY)
        return run_in_a_row(stream, destination, source, count, 0);
    return kn_buffer_copy(stream, source->storage->buffer, (size_t)source->offset * size, destination->storage->buffer,
                          (size_t)destination->offset * size, bytes);
}

kn_status kn_copy_on_device(kn_tensor *destination, const kn_tensor *source)
{
    const kn_layout layout = merged_layout(destination, source);
    const bool same_dtype = source->dtype == destination->dtype;
    kn_stream *stream = kn_tensor_stream(source);
    if (!stream)
        return kn_error_status();
    if (same_dtype && is_in_a_row(&layout))
        return copy_in_a_row(stream, destination, source, layout.shape[0]);
    kn_pointwise_problem p = problem_of(&kn_copying, source->dtype, destination);
    p.num_inputs = 1;
    p.inputs[0] = operand_of(source);
    const int transposed = same_dtype ? kn_transposed_dim(kn_tensor_limits(source), &layout, source->dtype) : -1;
    if (transposed >= 0)
        return kn_copy_transposed(stream, &layout, transposed, &p.outputs[0], &p.inputs[0]);
    return kn_pointwise_run(stream, &p);
}

/* --- on the host ------------------------------------------------------------------------------ */

kn_status kn_copy_on_host(kn_tensor *destination, const kn_tensor *source)
{
    KN_TRY(kn_storage_wait(source->storage, KN_HOST_READ));
    KN_TRY(kn_storage_wait(destination->storage, KN_HOST_WRITE));
    const kn_layout l = merged_layout(destination, source);
    size_t from_size = kn_tensor_element_size(source), to_size = kn_tensor_element_size(destination);
    const char *from = (const char *)source->storage->host + (size_t)source->offset * from_size;
    char *to = (char *)destination->storage->host + (size_t)destination->offset * to_size;
    const int last = l.ndim - 1;
    int64_t rows = kn_shape_numel(last, l.shape), width = l.shape[last];
    bool plain = source->dtype == destination->dtype && l.strides[KN_FROM][last] == 1 && l.strides[KN_TO][last] == 1;
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, s = 0, d = 0;
        for (int k = last - 1; k >= 0; k--) {
            s += rest % l.shape[k] * l.strides[KN_FROM][k];
            d += rest % l.shape[k] * l.strides[KN_TO][k];
            rest /= l.shape[k];
        }
        if (plain) {
            memcpy(to + (size_t)d * to_size, from + (size_t)s * from_size, (size_t)width * from_size);
            continue;
        }
        for (int64_t j = 0; j < width; j++)
            kn_element_set(to, destination->dtype, d + j * l.strides[KN_TO][last],
                           kn_element_get(from, source->dtype, s + j * l.strides[KN_FROM][last]), source->dtype);
    }
    return KN_OK;
}

/* --- two views of one storage ------------------------------------------------------------------ */

/* Two views of one storage may overlap: no element may be read after it was overwritten. */
static kn_status copy_within(kn_tensor *destination, const kn_tensor *source)
{
    kn_tensor *apart;
    KN_TRY(kn_tensor_new(&apart, source->dtype, source->ndim, source->shape, source->storage->device));
    kn_status status = kn_tensor_copy(apart, source);
    if (status == KN_OK)
        status = kn_tensor_copy(destination, apart);
    kn_release(apart);
    return status;
}

/* --- the interface ---------------------------------------------------------------------------- */

kn_status kn_tensor_copy_with(kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    if (!kn_same_shape(destination, source)) {
        char from[KN_DESCRIBE], to[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "copy: the source is %s, the destination %s",
                       kn_tensor_describe(from, sizeof from, source), kn_tensor_describe(to, sizeof to, destination));
    }
    if (kn_numel(source) == 0)
        return KN_OK;
    KN_TRY(kn_tensor_check_memory(source));
    KN_TRY(kn_tensor_check_memory(destination));
    if (source->storage == destination->storage)
        return copy_within(destination, source);
    if (source->storage->device != destination->storage->device)
        return kn_copy_across(destination, source, non_blocking);
    if (!kn_device_is_host(source->storage->device))
        return kn_copy_on_device(destination, source);
    return kn_copy_on_host(destination, source);
}

kn_status kn_tensor_copy(kn_tensor *destination, const kn_tensor *source)
{
    return kn_tensor_copy_with(destination, source, false);
}

/* `source` broadcast to `shape` with strides of 0. */
static kn_status broadcast_view(kn_tensor **view, kn_tensor *source, int ndim, const int64_t *shape)
{
    int64_t strides[KN_MAX_DIMS] = {0};
    int extra = ndim - source->ndim;
    bool fits = extra >= 0;
    for (int i = 0; fits && i < source->ndim; i++) {
        fits = source->shape[i] == shape[extra + i] || source->shape[i] == 1;
        strides[extra + i] = source->shape[i] == 1 ? 0 : source->strides[i];
    }
    char from[KN_DESCRIBE], to[KN_DESCRIBE];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "copy: %s does not broadcast to %s", kn_tensor_describe(from, sizeof from, source),
                       kn_format_shape(to, sizeof to, ndim, shape));
    return kn_tensor_view(view, source, ndim, shape, strides, source->offset);
}

kn_status kn_tensor_copy_broadcast(kn_tensor *destination, kn_tensor *source, bool non_blocking)
{
    kn_tensor *view;
    KN_TRY(broadcast_view(&view, source, destination->ndim, destination->shape));
    kn_status status = kn_tensor_copy_with(destination, view, non_blocking);
    kn_release(view);
    return status;
}

kn_status kn_tensor_contiguous(kn_tensor **result, kn_tensor *tensor)
{
    return kn_tensor_packed(result, tensor, tensor->dtype);
}

kn_status kn_tensor_cast(kn_tensor **result, kn_tensor *tensor, kn_dtype dtype, kn_device *device)
{
    kn_tensor *made;
    KN_TRY(kn_tensor_new(&made, dtype, tensor->ndim, tensor->shape, device));
    kn_status status = kn_tensor_copy(made, tensor);
    if (status != KN_OK) {
        kn_release(made);
        return status;
    }
    *result = made;
    return KN_OK;
}

static bool is_one_byte(const char *value, size_t size) { return memcmp(value, value + 1, size - 1) == 0; }

/* `value`: an element. */
static kn_status fill_by_driver(kn_stream *stream, kn_tensor *tensor, const char *value)
{
    const size_t size = kn_tensor_element_size(tensor);
    const bool by_bytes = kn_tensor_limits(tensor)->is_cpu && is_one_byte(value, size);
    return kn_buffer_fill(stream, tensor->storage->buffer, (size_t)tensor->offset * size, value, by_bytes ? 1 : size,
                          (size_t)kn_numel(tensor) * size);
}

static kn_status fill_in_a_row(kn_tensor *tensor, const char *value)
{
    kn_stream *stream = kn_tensor_stream(tensor);
    const size_t size = kn_tensor_element_size(tensor), bytes = (size_t)kn_numel(tensor) * size;
    const kn_limits *limits = kn_tensor_limits(tensor);
    if (!stream)
        return kn_error_status();
    if (limits->is_cpu &&
        (is_one_byte(value, size) ? bytes >= LONG_CLEAR && bytes < limits->global_cache : bytes >= LONG_FILL))
        return run_in_a_row(stream, tensor, NULL, kn_numel(tensor), kn_element_get(value, integer_of(size), 0).whole);
    return fill_by_driver(stream, tensor, value);
}

kn_status kn_tensor_clear(kn_tensor *tensor)
{
    static const char zero[8];
    if (kn_numel(tensor) == 0 || !kn_is_contiguous(tensor) || kn_device_is_host(tensor->storage->device))
        return kn_tensor_fill(tensor, 0);
    KN_TRY(kn_tensor_check_memory(tensor));
    kn_stream *stream = kn_tensor_stream(tensor);
    return stream ? fill_by_driver(stream, tensor, zero) : kn_error_status();
}

static kn_status fill_strided(kn_tensor *tensor, kn_scalar value)
{
    kn_stream *stream = kn_tensor_stream(tensor);
    if (!stream)
        return kn_error_status();
    kn_pointwise_problem p = problem_of(&filling, tensor->dtype, tensor);
    p.numbers[0] = value;
    return kn_pointwise_run(stream, &p);
}

/* Non-contiguous host tensors: copied from one element with strides of 0. */
static kn_status fill_strided_on_host(kn_tensor *tensor, kn_scalar value)
{
    kn_tensor *one, *repeated;
    const int64_t strides[KN_MAX_DIMS] = {0};
    KN_TRY(kn_tensor_new(&one, tensor->dtype, 0, NULL, tensor->storage->device));
    kn_status status = kn_tensor_fill_with(one, value);
    if (status == KN_OK)
        status = kn_tensor_view(&repeated, one, tensor->ndim, tensor->shape, strides, 0);
    kn_release(one);
    if (status != KN_OK)
        return status;
    status = kn_tensor_copy(tensor, repeated);
    kn_release(repeated);
    return status;
}

kn_status kn_tensor_fill(kn_tensor *tensor, double value) { return kn_tensor_fill_with(tensor, kn_scalar_real(value)); }

kn_status kn_tensor_fill_with(kn_tensor *tensor, kn_scalar value)
{
    const int64_t numel = kn_numel(tensor);
    const bool on_host = kn_device_is_host(tensor->storage->device);
    if (numel == 0)
        return KN_OK;
    KN_TRY(kn_tensor_check_memory(tensor));
    if (!kn_is_contiguous(tensor))
        return on_host ? fill_strided_on_host(tensor, value) : fill_strided(tensor, value);
    union {
        double aligned;
        char bytes[8];
    } pattern;
    size_t size = kn_tensor_element_size(tensor);
    kn_element_set(&pattern, tensor->dtype, 0, (kn_element){value.real, value.whole}, value.is_whole ? KN_I64 : KN_F64);
    if (!on_host)
        return fill_in_a_row(tensor, pattern.bytes);
    KN_TRY(kn_storage_wait(tensor->storage, KN_HOST_WRITE));
    char *data = (char *)tensor->storage->host + (size_t)tensor->offset * size;
    for (int64_t i = 0; i < numel; i++)
        memcpy(data + (size_t)i * size, &pattern, size);
    return KN_OK;
}

kn_status kn_tensor_accumulate(kn_tensor *sum, const kn_tensor *addend)
{
    kn_stream *stream = kn_tensor_stream(sum);
    if (!stream)
        return kn_error_status();
    kn_pointwise_problem p = problem_of(&accumulating, sum->dtype, sum);
    p.num_inputs = 2;
    p.inputs[0] = operand_of(sum);
    p.inputs[1] = operand_of(addend);
    return kn_pointwise_run(stream, &p);
}
