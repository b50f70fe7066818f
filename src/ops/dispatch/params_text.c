/* ops/dispatch/params_text.c - see params_text.h. */
#include "ops/dispatch/params_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void append_numbers(kn_text *out, const int64_t *values, int count, const char *between)
{
    for (int i = 0; i < count; i++)
        kn_text_format(out, "%s%lld", i > 0 ? between : "", (long long)values[i]);
}

static void append_list(kn_text *out, const kn_ints *list, bool python)
{
    kn_text_append(out, python ? "(" : "[");
    append_numbers(out, list->values, list->count, ", ");
    kn_text_append(out, python && list->count == 1 ? ",)" : python ? ")" : "]");
}

/* As Python's repr: the fewest digits that give the same number, and always a point or an exponent. */
static void append_repr(kn_text *out, double value)
{
    char digits[32];
    int count = 0;
    if (!isfinite(value)) {
        kn_text_format(out, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", count, value);
    while (strtod(digits, NULL) != value && ++count < 17);
    const int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16)
        kn_text_format(out, "%.*g", count + 1, value);
    else
        kn_text_format(out, "%.*f", count - exponent > 1 ? count - exponent : 1, value);
}

static void append_real(kn_text *out, double value, bool python)
{
    if (python)
        append_repr(out, value);
    else
        kn_text_format(out, "%g", value);
}

static void append_scalar(kn_text *out, kn_scalar scalar, bool python)
{
    if (scalar.is_whole)
        kn_text_format(out, "%lld", (long long)scalar.whole);
    else
        append_real(out, scalar.real, python);
}

void kn_param_append(kn_text *out, const kn_op_param *param, const void *at, bool python)
{
    switch (param->kind) {
    case KN_PARAM_BOOL:
        kn_text_append(out, *(const bool *)at ? (python ? "True" : "true") : python ? "False" : "false");
        break;
    case KN_PARAM_INT:
        kn_text_format(out, "%d", *(const int *)at);
        break;
    case KN_PARAM_INT64:
        append_numbers(out, at, (int)(param->size / sizeof(int64_t)), " ");
        break;
    case KN_PARAM_DOUBLE:
        for (size_t i = 0; i < param->size / sizeof(double); i++) {
            kn_text_append(out, i > 0 ? " " : "");
            append_real(out, ((const double *)at)[i], python);
        }
        break;
    case KN_PARAM_SCALAR:
        append_scalar(out, *(const kn_scalar *)at, python);
        break;
    case KN_PARAM_DTYPE:
        kn_text_append(out, kn_dtype_name(*(const kn_dtype *)at));
        break;
    case KN_PARAM_ENUM:
        kn_text_format(out, python ? "'%s'" : "%s", param->values[*(const int *)at]);
        break;
    case KN_PARAM_INTS:
        append_list(out, at, python);
        break;
    case KN_PARAM_GENERATOR:
        kn_text_append(out, python ? "None" : "none");
        break;
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* A reader of one value; each function returns whether the whole word was a value of its kind. */
typedef struct word {
    const char *text;
    size_t length;
} word;

static bool equals(word w, const char *text) { return strlen(text) == w.length && memcmp(w.text, text, w.length) == 0; }

static bool read_bool(bool *value, word w)
{
    *value = equals(w, "1") || equals(w, "true");
    return *value || equals(w, "0") || equals(w, "false");
}

/* At most `most` numbers, separated by commas. */
static bool read_doubles(double *values, int most, word w)
{
    char *end = (char *)(uintptr_t)w.text;
    for (int i = 0; i < most && (i == 0 || *end == ','); i++) {
        const char *start = i > 0 ? end + 1 : end;
        values[i] = strtod(start, &end);
        if (end == start)
            return false;
    }
    return w.length > 0 && end == w.text + w.length;
}

/* At most `most` integers, separated by commas; -1 if it is something else. An empty word is an empty list. */
static int read_list(int64_t *values, int most, word w)
{
    char *end = (char *)(uintptr_t)w.text;
    for (int count = 0; count < most; count++) {
        if (end == w.text + w.length)
            return count;
        const char *start = count > 0 ? end + 1 : end;
        values[count] = strtoll(start, &end, 10);
        if (end == start || (end != w.text + w.length && *end != ','))
            return -1;
    }
    return end == w.text + w.length ? most : -1;
}

static bool read_name(int *value, word w, const char *const *names)
{
    for (*value = 0; names[*value]; ++*value)
        if (equals(w, names[*value]))
            return true;
    return false;
}

static bool read_dtype(kn_dtype *value, word w)
{
    for (*value = KN_DTYPE_DEFAULT + 1; kn_dtype_is_valid(*value); ++*value)
        if (equals(w, kn_dtype_name(*value)))
            return true;
    return false;
}

static bool read_scalar(kn_scalar *value, word w)
{
    int64_t whole;
    double real;
    if (read_list(&whole, 1, w) == 1)
        *value = kn_scalar_int(whole);
    else if (read_doubles(&real, 1, w))
        *value = kn_scalar_real(real);
    else
        return false;
    return true;
}

static bool read_value(const kn_op_param *param, void *at, word w)
{
    int64_t whole = 0;
    switch (param->kind) {
    case KN_PARAM_BOOL:
        return read_bool(at, w);
    case KN_PARAM_INT:
        if (read_list(&whole, 1, w) != 1)
            return false;
        *(int *)at = (int)whole;
        return true;
    case KN_PARAM_INT64:
        return read_list(at, (int)(param->size / sizeof(int64_t)), w) > 0;
    case KN_PARAM_DOUBLE:
        return read_doubles(at, (int)(param->size / sizeof(double)), w);
    case KN_PARAM_SCALAR:
        return read_scalar(at, w);
    case KN_PARAM_DTYPE:
        return read_dtype(at, w);
    case KN_PARAM_ENUM:
        return read_name(at, w, param->values);
    case KN_PARAM_INTS:
        ((kn_ints *)at)->count = read_list(((kn_ints *)at)->values, KN_MAX_DIMS, w);
        return ((kn_ints *)at)->count >= 0;
    default: /* a generator: the device's */
        return false;
    }
}

const kn_op_param *kn_op_find_param(const kn_op *op, const char *name, size_t length)
{
    for (int i = 0; i < kn_op_params_of(op)->count; i++)
        if (equals((word){name, length}, kn_op_params_of(op)->rows[i].name))
            return &kn_op_params_of(op)->rows[i];
    return NULL;
}

kn_status kn_op_params_read(const kn_op *op, void *params, const char *words)
{
    while (words && *words) {
        const word name = {words, strcspn(words, "= ")};
        const char *after = words + name.length + (words[name.length] == '=');
        const word value = {after, strcspn(after, " ")};
        const kn_op_param *param = kn_op_find_param(op, name.text, name.length);
        if (!param)
            return kn_fail(KN_ERR_ARGUMENT, "%s has no parameter \"%.*s\"", op->name, (int)name.length, name.text);
        if (!read_value(param, (char *)params + param->offset, value))
            return kn_fail(KN_ERR_ARGUMENT, "%s: %s cannot be \"%.*s\"", op->name, param->name, (int)value.length,
                           value.text);
        words = value.text + value.length;
        words += strspn(words, " ");
    }
    return KN_OK;
}
