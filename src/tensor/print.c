/* tensor/print.c - prints tensors as PyTorch does (rules of torch/_tensor_str.py). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/plain_numbers.h"
#include "base/text.h"
#include "base/threads.h"
#include "tensor/element.h"
#include "tensor/hooks.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

static kn_print_options set_options = {KN_PRINT_DEFAULTS};
static kn_mutex lock = KN_MUTEX_INIT; /* of set_options */

kn_print_options kn_print_options_init(void) { return (kn_print_options){KN_PRINT_DEFAULTS}; }

kn_print_options kn_get_print_options(void)
{
    kn_lock(&lock);
    const kn_print_options options = set_options;
    kn_unlock(&lock);
    return options;
}

kn_status kn_set_print_options_with(const kn_print_options *options)
{
    const kn_print_options wanted = options != NULL ? *options : kn_print_options_init();
    if (wanted.precision < 0 || wanted.precision > 50)
        return kn_fail(KN_ERR_ARGUMENT, "set_print_options: precision is from 0 to 50, not %d", wanted.precision);
    if (wanted.threshold < 0 || wanted.edge_items < 1 || wanted.line_width < 1)
        return kn_fail(KN_ERR_ARGUMENT,
                       "set_print_options: threshold (%" PRId64 ") is at least 0, edge_items (%d) and line_width (%d) "
                       "are at least 1",
                       wanted.threshold, wanted.edge_items, wanted.line_width);
    kn_lock(&lock);
    set_options = wanted;
    kn_unlock(&lock);
    return KN_OK;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

enum { LONGEST = 384 }; /* of the largest double, with all digits after the point */

/* How the elements are written: decided once for the whole tensor. */
typedef struct formatter {
    const void *data; /* contiguous, on the host */
    kn_dtype dtype;
    int ndim;
    const int64_t *shape;
    bool summarize;
    bool integers; /* floating, but all values are integers: "1." */
    bool scientific;
    int width;
    kn_print_options options;
    kn_text *out;
} formatter;

static void format_element(const formatter *f, int64_t index, char text[LONGEST])
{
    kn_element e = kn_element_get(f->data, f->dtype, index);
    if (f->dtype == KN_BOOL)
        snprintf(text, LONGEST, "%s", e.whole ? "True" : "False");
    else if (!kn_dtype_is_floating(f->dtype))
        snprintf(text, LONGEST, "%" PRId64, e.whole);
    else if (isnan(e.real))
        snprintf(text, LONGEST, "nan");
    else if (isinf(e.real))
        snprintf(text, LONGEST, "%s", e.real > 0 ? "inf" : "-inf");
    else if (f->scientific)
        snprintf(text, LONGEST, "%.*e", f->options.precision, e.real);
    else if (f->integers)
        snprintf(text, LONGEST, "%.0f.", e.real);
    else
        snprintf(text, LONGEST, "%.*f", f->options.precision, e.real);
}

/* Calls `visit` with the index of every element that will be shown. */
typedef void (*visitor)(formatter *f, int64_t index, void *user);

static void visit_shown(formatter *f, int dim, int64_t base, visitor visit, void *user)
{
    if (dim == f->ndim) {
        visit(f, base, user);
        return;
    }
    const int64_t size = f->shape[dim], inner = kn_shape_numel(f->ndim - dim - 1, f->shape + dim + 1);
    const int64_t edge = f->options.edge_items;
    for (int64_t i = 0; i < size; i++) {
        if (f->summarize && size > 2 * edge && i == edge)
            i = size - edge;
        visit_shown(f, dim + 1, base + i * inner, visit, user);
    }
}

typedef struct range {
    double least, most; /* of the finite nonzero magnitudes */
    bool all_whole, any;
} range;

static void visit_range(formatter *f, int64_t index, void *user)
{
    range *r = user;
    double value = kn_element_get(f->data, f->dtype, index).real;
    if (!isfinite(value) || value == 0)
        return;
    r->all_whole &= value == ceil(value);
    r->least = fmin(r->least, fabs(value));
    r->most = fmax(r->most, fabs(value));
    r->any = true;
}

/* Infinities, NaN and zeros of floating tensors do not widen the column, as in PyTorch. */
static void visit_width(formatter *f, int64_t index, void *user)
{
    (void)user;
    if (kn_dtype_is_floating(f->dtype)) {
        double value = kn_element_get(f->data, f->dtype, index).real;
        if (!isfinite(value) || value == 0)
            return;
    }
    char text[LONGEST];
    format_element(f, index, text);
    int width = (int)strlen(text);
    if (width > f->width)
        f->width = width;
}

static void choose_format(formatter *f)
{
    f->width = 1;
    f->integers = true;
    if (kn_dtype_is_floating(f->dtype)) {
        range r = {.least = INFINITY, .most = 0, .all_whole = true};
        visit_shown(f, 0, 0, visit_range, &r);
        if (!r.any)
            return;
        f->integers = r.all_whole;
        f->scientific = f->options.sci_mode == KN_SCI_ALWAYS;
        if (f->options.sci_mode == KN_SCI_AUTO)
            f->scientific = r.most / r.least > 1000 || r.most > 1e8 || (!r.all_whole && r.least < 1e-4);
    }
    visit_shown(f, 0, 0, visit_width, NULL);
}

static void write_element(formatter *f, int64_t index)
{
    char text[LONGEST];
    format_element(f, index, text);
    kn_text_format(f->out, "%*s", f->width, text);
}

/* One row, with as many elements per line as fit. */
static void write_vector(formatter *f, int64_t base, int indent)
{
    const int64_t size = f->shape[f->ndim - 1], edge = f->options.edge_items;
    int per_line = (f->options.line_width - indent) / (f->width + 2), column = 0;
    bool cut = f->summarize && size > 2 * edge;
    if (per_line < 1)
        per_line = 1;
    kn_text_append(f->out, "[");
    for (int64_t i = 0; i < size; i++) {
        if (column == per_line) {
            kn_text_format(f->out, ",\n%*s", indent + 1, "");
            column = 0;
        } else if (i > 0) {
            kn_text_append(f->out, ", ");
        }
        column++;
        if (cut && i == edge) {
            kn_text_append(f->out, " ...");
            i = size - edge - 1;
            cut = false;
            continue;
        }
        write_element(f, base + i);
    }
    kn_text_append(f->out, "]");
}

static void write_dimension(formatter *f, int dim, int64_t base, int indent)
{
    if (f->ndim == 0) {
        write_element(f, base);
        return;
    }
    if (dim == f->ndim - 1) {
        write_vector(f, base, indent);
        return;
    }
    const int64_t size = f->shape[dim], inner = kn_shape_numel(f->ndim - dim - 1, f->shape + dim + 1);
    const int64_t edge = f->options.edge_items;
    bool cut = f->summarize && size > 2 * edge;
    kn_text_append(f->out, "[");
    for (int64_t i = 0; i < size; i++) {
        if (i > 0) {
            kn_text_append(f->out, ",");
            for (int line = 0; line < f->ndim - dim - 1; line++)
                kn_text_append(f->out, "\n");
            kn_text_format(f->out, "%*s", indent + 1, "");
        }
        if (cut && i == edge) {
            kn_text_append(f->out, "...");
            i = size - edge - 1;
            cut = false;
            continue;
        }
        write_dimension(f, dim + 1, base + i * inner, indent + 1);
    }
    kn_text_append(f->out, "]");
}

/* ", suffix", on a new line if it does not fit; `last` is the length of the last line so far. */
static void write_suffix(kn_text *out, const char *suffix, size_t *last, int line_width)
{
    const int indent = 7; /* strlen("tensor(") */
    if (*last + strlen(suffix) + 2 > (size_t)line_width) {
        kn_text_format(out, ",\n%*s%s", indent, "", suffix);
        *last = (size_t)indent + strlen(suffix);
    } else {
        kn_text_format(out, ", %s", suffix);
        *last += strlen(suffix) + 2;
    }
}

static void write_suffixes(kn_text *out, const kn_tensor *tensor, const char *extra, int line_width)
{
    if (!out->data)
        return;
    const char *newline = strrchr(out->data, '\n');
    size_t last = newline ? out->length - (size_t)(newline - out->data) + 1 : out->length + 2;
    char suffix[128], shape[96];
    bool empty = kn_numel(tensor) == 0;
    if (!kn_device_is_host(tensor->storage->device)) {
        snprintf(suffix, sizeof suffix, "device='%s'", kn_device_string(tensor->storage->device));
        write_suffix(out, suffix, &last, line_width);
    }
    if (empty && tensor->ndim != 1) {
        kn_format_shape(shape, sizeof shape, tensor->ndim, tensor->shape);
        shape[0] = '(';
        shape[strlen(shape) - 1] = ')';
        snprintf(suffix, sizeof suffix, "size=%s", shape);
        write_suffix(out, suffix, &last, line_width);
    }
    bool expected = tensor->dtype == KN_F32 || (!empty && (tensor->dtype == KN_I64 || tensor->dtype == KN_BOOL));
    if (!expected) {
        snprintf(suffix, sizeof suffix, "dtype=torch.%s", kn_dtype_name(tensor->dtype));
        write_suffix(out, suffix, &last, line_width);
    }
    if (extra)
        write_suffix(out, extra, &last, line_width);
}

char *kn_tensor_format(const kn_tensor *tensor, const char *suffix)
{
    size_t bytes = (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor);
    void *data = kn_malloc(bytes);
    if (!data || kn_read(tensor, data, bytes) != KN_OK) {
        kn_free(data);
        return NULL;
    }
    kn_text out = {0};
    formatter f = {.data = data,
                   .dtype = tensor->dtype,
                   .ndim = tensor->ndim,
                   .shape = tensor->shape,
                   .out = &out,
                   .options = kn_get_print_options()};
    f.summarize = kn_numel(tensor) > f.options.threshold;
    KN_PLAIN_NUMBERS;
    kn_text_append(&out, "tensor(");
    if (kn_numel(tensor) == 0) {
        kn_text_append(&out, "[]");
    } else {
        choose_format(&f);
        write_dimension(&f, 0, 0, 7);
    }
    write_suffixes(&out, tensor, suffix, f.options.line_width);
    kn_text_append(&out, ")");
    kn_free(data);
    return kn_text_finish(&out);
}
