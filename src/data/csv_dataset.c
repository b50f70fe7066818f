/* data/csv_dataset.c - the records of a CSV file as samples. */
#include <koine/csv.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/plain_numbers.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "io/source.h"
#include "tensor/element.h"

typedef struct csv_dataset {
    int64_t length;
    int num_inputs;
    size_t input_bytes, target_bytes; /* of a sample; target_bytes 0: there is none */
    char *inputs, *targets;
    char **classes; /* NULL-terminated; NULL: the targets are numbers */
} csv_dataset;

static int64_t length(void *self) { return ((const csv_dataset *)self)->length; }

static kn_status get(void *self, int64_t index, void *const *fields)
{
    const csv_dataset *data = self;
    memcpy(fields[0], data->inputs + (size_t)index * data->input_bytes, data->input_bytes);
    if (data->target_bytes > 0)
        memcpy(fields[1], data->targets + (size_t)index * data->target_bytes, data->target_bytes);
    return KN_OK;
}

static void destroy(void *self)
{
    csv_dataset *data = self;
    for (char **text = data->classes; text && *text; text++)
        kn_free(*text);
    kn_free(data->classes);
    kn_free(data->inputs);
    kn_free(data->targets);
    kn_free(data);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

typedef struct named_column {
    const char *name;
    int index;
} named_column;

/* What is known while the file is read. */
typedef struct reading {
    const kn_csv_params *params;
    kn_csv_reader reader;
    csv_dataset *data;
    char **names;         /* of the columns */
    named_column *sorted; /* by their names */
    int num_columns;
    int *inputs; /* numbers of columns */
    int target;  /* -1: none */
    bool target_is_text;
    char **labels; /* the target's texts, while it is not known whether they are numbers; in the file's text */
    int64_t *label_lines;
    int num_labels, labels_capacity, lines_capacity;
    int64_t capacity; /* records that fit the memory */
} reading;

static kn_status refuse(const reading *r, int column, const char *expected, const char *found)
{
    return kn_fail(KN_ERR_FORMAT, "'%s', line %lld, column \"%s\": expected %s, found \"%.60s\"", r->reader.path,
                   (long long)r->reader.record_line, r->names[column], expected, found);
}

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static bool parse_whole(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    text = skip_blanks(text);
    *value = strtoll(text, &end, 10);
    return end != text && errno == 0 && *skip_blanks(end) == '\0' && (*text == '-' || *text == '+' || *text >= '0');
}

/* strtod would also take hexadecimal numbers, and words that begin like nan and inf: "nancy" has a rest. */
static bool parse_real(const char *text, double *value)
{
    char *end;
    text = skip_blanks(text);
    if (strpbrk(text, "xX(") || strchr("\v\f\r\n", *text))
        return false;
    *value = strtod(text, &end);
    return end != text && *skip_blanks(end) == '\0';
}

static kn_status store(const reading *r, int column, kn_dtype dtype, void *to, int64_t index)
{
    const char *text = r->reader.values[column];
    kn_element element = {0};
    const bool floating = kn_dtype_is_floating(dtype);
    if (floating && r->params->missing && *skip_blanks(text) == '\0')
        element.real = NAN;
    else if (floating ? !parse_real(text, &element.real) : !parse_whole(text, &element.whole))
        return refuse(r, column, floating ? "a number" : "a whole number", text);
    else if (!floating && (element.whole < kn_dtype_lowest(dtype) || element.whole > kn_dtype_highest(dtype)))
        return refuse(r, column, kn_dtype_name(dtype), text);
    kn_element_set(to, dtype, index, element, floating ? KN_F64 : KN_I64);
    return KN_OK;
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

static int compare_columns(const void *a, const void *b)
{
    return strcmp(((const named_column *)a)->name, ((const named_column *)b)->name);
}

static kn_status sort_columns(reading *r)
{
    if (!(r->sorted = kn_calloc((size_t)r->num_columns, sizeof *r->sorted)))
        return KN_ERR_MEMORY;
    for (int i = 0; i < r->num_columns; i++)
        r->sorted[i] = (named_column){r->names[i], i};
    qsort(r->sorted, (size_t)r->num_columns, sizeof *r->sorted, compare_columns);
    for (int i = 1; i < r->num_columns; i++)
        if (strcmp(r->sorted[i].name, r->sorted[i - 1].name) == 0)
            return kn_fail(KN_ERR_FORMAT, "'%s', line %lld: two columns are called \"%.60s\"", r->reader.path,
                           (long long)r->reader.record_line, r->sorted[i].name);
    return KN_OK;
}

static int find_column(const reading *r, const char *name)
{
    const named_column wanted = {name, 0};
    const named_column *found = bsearch(&wanted, r->sorted, (size_t)r->num_columns, sizeof *r->sorted, compare_columns);
    return found ? found->index : -1;
}

static kn_status name_columns(reading *r)
{
    r->num_columns = r->reader.count;
    if (!(r->names = kn_calloc((size_t)r->num_columns, sizeof *r->names)))
        return KN_ERR_MEMORY;
    for (int i = 0; i < r->num_columns; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (!(r->names[i] = kn_strdup(r->params->header ? r->reader.values[i] : number)))
            return KN_ERR_MEMORY;
    }
    return sort_columns(r);
}

static kn_status need_column(const reading *r, const char *name, int *column)
{
    char there[256];
    *column = find_column(r, name);
    if (*column >= 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "kn_csv_dataset: '%s' has no column \"%s\"; %s", r->reader.path, name,
                   kn_describe_names(there, sizeof there, (const char *const *)r->names, r->num_columns));
}

static kn_status choose_columns(reading *r)
{
    const char *const *wanted = r->params->columns;
    csv_dataset *data = r->data;
    int count = 0;
    KN_TRY(name_columns(r));
    if (r->params->target)
        KN_TRY(need_column(r, r->params->target, &r->target));
    while (wanted && wanted[count])
        count++;
    if (!(r->inputs = kn_calloc((size_t)(wanted ? count : r->num_columns), sizeof *r->inputs)))
        return KN_ERR_MEMORY;
    for (int i = 0; wanted && i < count; i++)
        KN_TRY(need_column(r, wanted[i], &r->inputs[data->num_inputs++]));
    for (int i = 0; !wanted && i < r->num_columns; i++)
        if (i != r->target)
            r->inputs[data->num_inputs++] = i;
    data->input_bytes = (size_t)data->num_inputs * kn_dtype_size(r->params->dtype);
    data->target_bytes = r->target >= 0 ? kn_dtype_size(r->params->target_dtype) : 0;
    return KN_OK;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static kn_status make_room(reading *r)
{
    csv_dataset *data = r->data;
    if (data->length < r->capacity)
        return KN_OK;
    const int64_t capacity = r->capacity > 0 ? 2 * r->capacity : 256;
    char *inputs = kn_realloc(data->inputs, (size_t)capacity * data->input_bytes);
    data->inputs = inputs ? inputs : data->inputs;
    char *targets = kn_realloc(data->targets, (size_t)capacity * data->target_bytes);
    data->targets = targets ? targets : data->targets;
    r->capacity = inputs && targets ? capacity : r->capacity;
    return inputs && targets ? KN_OK : KN_ERR_MEMORY;
}

/* Classes are kept as texts until it is known whether all of them are whole numbers. */
static kn_status keep_label(reading *r)
{
    int64_t value;
    char *label = r->reader.values[r->target];
    KN_TRY(KN_GROW(r->labels, r->num_labels, r->labels_capacity));
    KN_TRY(KN_GROW(r->label_lines, r->num_labels, r->lines_capacity));
    r->target_is_text = r->target_is_text || !parse_whole(label, &value);
    r->label_lines[r->num_labels] = r->reader.record_line;
    r->labels[r->num_labels++] = label;
    return KN_OK;
}

static kn_status read_record(reading *r)
{
    csv_dataset *data = r->data;
    if (r->reader.count != r->num_columns)
        return kn_fail(KN_ERR_FORMAT, "'%s', line %lld: expected %d values, as in the first line, found %d",
                       r->reader.path, (long long)r->reader.record_line, r->num_columns, r->reader.count);
    KN_TRY(make_room(r));
    char *inputs = data->inputs + (size_t)data->length * data->input_bytes;
    for (int i = 0; i < data->num_inputs; i++)
        KN_TRY(store(r, r->inputs[i], r->params->dtype, inputs, i));
    if (r->target >= 0)
        KN_TRY(r->params->target_dtype == KN_I64
                   ? keep_label(r)
                   : store(r, r->target, r->params->target_dtype, data->targets, data->length));
    data->length++;
    return KN_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different labels in order, or the classes given. */
static kn_status list_classes(reading *r)
{
    const char *const *given = r->params->classes;
    int count = 0, different = 0;
    while (given && given[count])
        count++;
    count = given ? count : r->num_labels;
    const char **sorted = kn_calloc((size_t)count + 1, sizeof *sorted);
    char **classes = r->data->classes = kn_calloc((size_t)count + 1, sizeof *classes);
    kn_status status = sorted && classes ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK && count > 0)
        memcpy(sorted, given ? (const char **)(uintptr_t)given : (const char **)r->labels,
               (size_t)count * sizeof *sorted);
    if (status == KN_OK && !given)
        qsort(sorted, (size_t)count, sizeof *sorted, compare_texts);
    for (int i = 0; i < count && status == KN_OK; i++)
        if (given || i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0)
            status = (classes[different++] = kn_strdup(sorted[i])) ? KN_OK : KN_ERR_MEMORY;
    kn_free(sorted);
    return status;
}

static int64_t class_of(char *const *classes, const char *label)
{
    for (int64_t i = 0; classes[i]; i++)
        if (strcmp(classes[i], label) == 0)
            return i;
    return -1;
}

/* The same for classes in order. */
static int64_t sorted_class_of(char *const *classes, int64_t count, const char *label)
{
    char *const *found = bsearch(&label, classes, (size_t)count, sizeof *classes, compare_texts);
    return found ? found - classes : -1;
}

static kn_status number_classes(reading *r)
{
    int64_t *targets = (int64_t *)(void *)r->data->targets;
    const bool as_text = r->target_is_text || r->params->classes;
    if (as_text)
        KN_TRY(list_classes(r));
    char *const *classes = r->data->classes;
    int64_t count = 0;
    if (as_text && !classes)
        return KN_ERR_MEMORY;
    while (as_text && classes[count])
        count++;
    for (int64_t i = 0; i < r->num_labels; i++) {
        if (!as_text)
            parse_whole(r->labels[i], &targets[i]);
        else if ((targets[i] = r->params->classes ? class_of(classes, r->labels[i])
                                                  : sorted_class_of(classes, count, r->labels[i])) < 0) {
            r->reader.record_line = r->label_lines[i];
            return refuse(r, r->target, "one of the classes given", r->labels[i]);
        }
    }
    return KN_OK;
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static kn_status read_records(reading *r)
{
    bool more;
    KN_TRY(kn_csv_next(&r->reader, &more));
    if (!more)
        return kn_fail(KN_ERR_FORMAT, "'%s' is empty", r->reader.path);
    KN_TRY(choose_columns(r));
    if (r->params->header)
        KN_TRY(kn_csv_next(&r->reader, &more));
    for (; more;) {
        KN_TRY(read_record(r));
        KN_TRY(kn_csv_next(&r->reader, &more));
    }
    return r->target >= 0 && r->params->target_dtype == KN_I64 ? number_classes(r) : KN_OK;
}

static void end_reading(reading *r)
{
    for (int i = 0; i < r->num_columns && r->names; i++)
        kn_free(r->names[i]);
    kn_free(r->names);
    kn_free(r->sorted);
    kn_free(r->inputs);
    kn_free(r->labels);
    kn_free(r->label_lines);
    kn_csv_end(&r->reader);
}

/* strtod follows the thread's locale; numbers in files have a point in every one. */
static kn_status read_plainly(reading *r)
{
    kn_plain_numbers numbers = kn_plain_numbers_enter();
    const kn_status status =
        numbers.plain != (locale_t)0 ? read_records(r) : kn_fail(KN_ERR_MEMORY, "kn_csv_dataset: out of host memory");
    kn_plain_numbers_leave(&numbers);
    return status;
}

static kn_status read_file(csv_dataset *data, const char *path, const kn_csv_params *params)
{
    char *text = NULL;
    size_t size;
    KN_TRY(kn_source_read_file(&text, &size, path));
    reading r = {
        .params = params, .reader = kn_csv_read(path, text, size, params->delimiter), .data = data, .target = -1};
    const kn_status status = read_plainly(&r);
    end_reading(&r);
    kn_free(text);
    return status;
}

static kn_status check(const char *path, const kn_csv_params *p)
{
    if (!path)
        return kn_fail_argument_null("kn_csv_dataset", "path");
    if (!kn_dtype_is_valid(p->dtype) || (p->target && !kn_dtype_is_valid(p->target_dtype)))
        return kn_fail(KN_ERR_DTYPE, "kn_csv_dataset: the dtype of the %s is not set",
                       kn_dtype_is_valid(p->dtype) ? "target" : "input");
    if (p->delimiter == '\0' || p->delimiter == '"' || p->delimiter == '\n' || p->delimiter == '\r')
        return kn_fail(KN_ERR_ARGUMENT, "kn_csv_dataset: the delimiter must be a character other than a quote, a line "
                                        "end and NUL");
    return KN_OK;
}

static kn_status make(kn_dataset **made, const char *path, const kn_csv_params *p)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    KN_TRY(check(path, p));
    csv_dataset *data = kn_calloc(1, sizeof *data);
    if (!data)
        return KN_ERR_MEMORY;
    kn_status status = read_file(data, path, p);
    if (status != KN_OK) {
        destroy(data);
        return status;
    }
    const kn_field fields[] = {{.dtype = p->dtype, .ndim = 1, .shape = {data->num_inputs}}, {.dtype = p->target_dtype}};
    KN_TRY(kn_dataset_make(made, &functions, data, fields, data->target_bytes > 0 ? 2 : 1));
    (*made)->classes = (const char *const *)data->classes;
    return KN_OK;
}

kn_csv_params kn_csv_params_init(void) { return (kn_csv_params){KN_CSV_DEFAULTS}; }

kn_dataset *kn_csv_dataset_with(const char *path, const kn_csv_params *params)
{
    const kn_csv_params *p = params ? params : &(kn_csv_params){KN_CSV_DEFAULTS};
    kn_dataset *made = NULL;
    return make(&made, path, p) == KN_OK ? made : kn_error_make_sticky();
}
