/* loops/rows.c - selects a problem's kernels and launches them. */
#include "loops/rows.h"

#include <string.h>

#include "base/divisor.h"
#include "base/error.h"
#include "base/integer.h"
#include "loops/rows_source.h"
#include "rows/plan.h"

enum { FEW_ROWS = 16, SHORT_SCAN = 8 };
enum { MAX_ARGS = 2 * KN_ROWS_STATE + KN_ROWS_INPUTS + KN_ROWS_OUTPUTS + 6 + KN_ROWS_NUMBERS };

/* What the first of two launches passes to the second: for each field an array over all chunks or parts, the place
 * last. */
typedef struct rows_fields {
    kn_buffer *buffer;
    int64_t count; /* [outer, chunks, inner] */
} rows_fields;

static int count_fields(const kn_rows_code *code) { return (int)strlen(code->state); }

/* --- the form ----------------------------------------------------------------------------------------------------- */

/* Is an output just the place? */
static bool is_place(const kn_rows_code *code, const char *value)
{
    return code->place && value[0] == code->place && value[1] == '\0';
}

static bool wants_place(const kn_rows_problem *p)
{
    bool wants = false;
    for (int i = 0; i < KN_ROWS_OUTPUTS && p->code->values[i]; i++)
        wants |= p->outputs[i].dtype && is_place(p->code, p->code->values[i]);
    return wants;
}

static bool are_aligned(const kn_rows_problem *p)
{
    bool aligned = true;
    for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
        aligned &= !p->outputs[i].dtype || p->outputs[i].offset % 4 == 0;
    for (int i = 0; p->code->inputs[i]; i++)
        aligned &= p->inputs[i].offset % 4 == 0;
    return aligned && (!p->has_strides || (p->pitch % 4 == 0 && p->step % 4 == 0));
}

static bool maps(const kn_rows_code *code) { return code->map || code->prepass || code->total; }

static bool wants_any(const kn_rows_operand *outputs)
{
    return outputs[0].dtype || outputs[1].dtype || outputs[2].dtype;
}

/* kn_held_of the inputs that have one element per index. */
static int held_of(const kn_rows_problem *p, const kn_limits *limits)
{
    const kn_rows_code *code = p->code;
    int loaded = 0;
    for (int i = 0; code->inputs[i]; i++)
        loaded += p->inputs[i].dtype && kn_rows_is_loaded(kn_rows_extent_of(code, code->inputs[i]));
    return kn_held_of(p->n, p->inner, loaded, kn_work_for_groups(limits, 1).local);
}

/* Work-items of a GPU that share a row with a map. */
static int lanes_of(const kn_rows_problem *p, const kn_limits *limits)
{
    const int held = held_of(p, limits);
    return p->inner > 1 || !(p->code->step || p->code->map)
               ? 1
               : kn_team_for(p->n, held > 0 ? held : 16, kn_work_for_groups(limits, 1).local);
}

static kn_rows_walk walk_of(const kn_rows_problem *p, kn_chunks chunks, const kn_limits *limits)
{
    if (p->inner == 1)
        return KN_ALONG_ROWS;
    return !limits->is_cpu && chunks.length <= FEW_ROWS ? KN_DOWN_FEW_ROWS : KN_DOWN_COLUMNS;
}

/* Of a square tile of rows: the larger one if its elements fill no more than half of the vector registers. */
static uint8_t tile_width(const kn_rows_problem *p, const kn_limits *limits)
{
    const int bytes = limits->vector_registers * limits->vector_width_f32 * (int)sizeof(float);
    return 16 * 16 * (int)kn_dtype_size(p->compute) <= bytes / 2 ? 16 : 8;
}

/* On a CPU device the lanes are columns, or rows or a row's chunks if there are enough for the work per vector. */
static uint8_t scan_width(const kn_rows_problem *p, kn_chunks chunks, const kn_limits *limits)
{
    const int64_t lanes = p->inner > 1 ? 16 : chunks.count > 1 ? chunks.count : p->outer;
    return !limits->is_cpu || lanes < 4 ? 1 : p->inner == 1 ? tile_width(p, limits) : 16;
}

/* Short rows, as many as a vector has elements, are whole vectors, which take fewer shuffles than a tile that they do
 * not fill. Their steps are unrolled. */
static uint8_t scan_length(const kn_rows_problem *p, kn_chunks chunks, uint8_t width)
{
    const bool is_short = p->inner == 1 && chunks.count == 1 && p->n <= SHORT_SCAN;
    return is_short && width > 1 && !p->code->takes_long ? (uint8_t)p->n : 0;
}

static uint8_t limit_of_length(const kn_rows_problem *p, const kn_limits *limits)
{
    if (!limits->is_cpu || p->inner > 1 || p->n >= KN_ROWS_SHORT)
        return 0;
    return p->n < KN_ROWS_TINY && !p->mapped.dtype ? KN_ROWS_TINY : KN_ROWS_SHORT;
}

/* Not what is changed in place, nor where the last pass keeps elements: that is in the caches anyway. */
static bool should_bypass(const kn_rows_problem *p, const kn_limits *limits)
{
    const kn_rows_code *code = p->code;
    if (!p->mapped.dtype || code->keep)
        return false;
    size_t bytes = kn_dtype_size(p->mapped.dtype); /* per element */
    for (int i = 0; code->inputs[i]; i++) {
        if (!p->inputs[i].dtype || kn_rows_extent_of(code, code->inputs[i]) != PER_ELEMENT)
            continue;
        if (p->inputs[i].buffer == p->mapped.buffer)
            return false;
        bytes += kn_dtype_size(p->inputs[i].dtype);
    }
    return kn_bypasses_caches(limits, (uint64_t)(p->outer * p->n * p->inner) * bytes);
}

static kn_rows_form form_of(const kn_rows_problem *p, kn_rows_stage stage, kn_chunks chunks, const kn_limits *limits)
{
    kn_rows_form form;
    memset(&form, 0, sizeof form); /* compared bytewise */
    form.stage = (uint8_t)stage;
    form.walk = (uint8_t)walk_of(p, chunks, limits);
    form.compute = (uint8_t)p->compute;
    form.width = stage == KN_ROWS_SCAN               ? scan_width(p, chunks, limits)
                 : limits->is_cpu                    ? 16
                 : stage == KN_ROWS_MAP              ? 1
                 : p->inner > 1 && p->inner % 4 == 0 ? 4
                                                     : 1;
    form.length = stage == KN_ROWS_SCAN ? scan_length(p, chunks, form.width) : 0;
    form.is_aligned = form.width == 4 && are_aligned(p);
    form.has_place = wants_place(p);
    form.mapped = (uint8_t)p->mapped.dtype;
    form.bypass = stage == KN_ROWS_MAP && should_bypass(p, limits);
    form.below = stage == KN_ROWS_MAP ? limit_of_length(p, limits) : 0;
    if (stage == KN_ROWS_MAP && !limits->is_cpu)
        form.held = (uint8_t)held_of(p, limits);
    form.has_columns = stage == KN_ROWS_MAP && wants_any(p->columns);
    form.in_parts = stage == KN_ROWS_MAP && chunks.count > 1 && !form.has_columns;
    for (int i = 0; i < KN_ROWS_OUTPUTS && stage != KN_ROWS_PARTIAL; i++) {
        form.outputs[i] = (uint8_t)p->outputs[i].dtype;
        form.totals[i] = (uint8_t)p->totals[i].dtype;
    }
    for (int i = 0; p->code->inputs[i]; i++)
        form.inputs[i] = (uint8_t)p->inputs[i].dtype;
    return form;
}

static bool uses_f64(const kn_rows_problem *p)
{
    bool f64 = p->compute == KN_F64;
    for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
        f64 |= p->outputs[i].dtype == KN_F64;
    for (int i = 0; p->code->inputs[i]; i++)
        f64 |= p->inputs[i].dtype == KN_F64;
    return f64;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static kn_arg operand_argument(const kn_rows_operand *operand)
{
    return kn_arg_buffer(operand->buffer, operand->offset * (int64_t)kn_dtype_size(operand->dtype));
}

/* Field i; the place follows the last field. */
static kn_arg field_argument(const kn_rows_problem *p, const rows_fields *fields, int i)
{
    return kn_arg_buffer(fields->buffer, i * fields->count * (int64_t)kn_dtype_size(p->compute));
}

static int add_values(kn_arg *args, const kn_rows_operand *values)
{
    int count = 0;
    for (int i = 0; i < KN_ROWS_OUTPUTS; i++)
        if (values[i].dtype)
            args[count++] = operand_argument(&values[i]);
    return count;
}

static int add_fields(kn_arg *args, const kn_rows_problem *p, const rows_fields *fields, int count)
{
    for (int i = 0; i < count; i++)
        args[i] = field_argument(p, fields, i);
    return count;
}

static int add_outputs(kn_arg *args, const kn_rows_problem *p, const rows_fields *fields, const kn_rows_form *form)
{
    int count = 0;
    if (form->mapped)
        args[count++] = operand_argument(&p->mapped);
    if (form->stage == KN_ROWS_PARTIAL)
        return count + add_fields(args + count, p, fields, count_fields(p->code) + form->has_place);
    count += add_values(args + count, p->outputs);
    if (form->has_columns)
        return count + add_fields(args + count, p, fields, count_fields(p->code->columns));
    if (form->in_parts)
        return count + add_fields(args + count, p, fields, count_fields(p->code->total));
    return count + add_values(args + count, p->totals);
}

static int add_inputs(kn_arg *args, const kn_rows_problem *p, const rows_fields *fields, const kn_rows_form *form)
{
    const bool combines = form->stage == KN_ROWS_COMBINED;
    int count = combines ? add_fields(args, p, fields, count_fields(p->code)) : 0;
    if (form->stage == KN_ROWS_SCAN) {
        args[count++] = operand_argument(&p->inputs[0]);
        for (int i = 0; i < count_fields(p->code) + form->has_place; i++) /* ignored if nothing is cut */
            args[count++] = fields ? field_argument(p, fields, i) : operand_argument(&p->inputs[0]);
        return count;
    }
    for (int i = 0; p->code->inputs[i]; i++)
        if (p->inputs[i].dtype && (!combines || kn_rows_extent_of(p->code, p->code->inputs[i]) == PER_ROW))
            args[count++] = operand_argument(&p->inputs[i]);
    if (combines && form->has_place)
        args[count++] = field_argument(p, fields, count_fields(p->code));
    return count;
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* A second thread starts some microseconds after the first. */
enum { SIMPLE_PER_ITEM = 65536, OTHERS_PER_ITEM = SIMPLE_PER_ITEM / 4 }; /* elements */

/* Tasks of a CPU device's kernel; a few work-items per core. */
static kn_work_size work_on_cpu(const kn_limits *limits, const kn_rows_problem *p, kn_chunks chunks)
{
    const int64_t tasks = wants_any(p->totals) || wants_any(p->columns)
                              ? chunks.count
                              : p->outer * chunks.count * (p->inner == 1 ? 1 : kn_div_up(p->inner, 64));
    const bool is_simple = !maps(p->code) && !p->code->takes_long && !p->scans;
    const size_t items = kn_work_items(limits, p->outer * (p->n > 0 ? p->n : 1) * p->inner,
                                       is_simple ? SIMPLE_PER_ITEM : OTHERS_PER_ITEM);
    return (kn_work_size){.global = (size_t)kn_min_i64(tasks, (int64_t)items)};
}

/* A long column is shared by a work-group's lines, a short one belongs to one work-item. */
static kn_work_size work_on_gpu(const kn_limits *limits, const kn_rows_problem *p, const kn_rows_form *form,
                                kn_chunks chunks, kn_rows_plan *plan)
{
    const int64_t pieces = p->outer * chunks.count, across = p->inner / form->width;
    if (form->stage == KN_ROWS_MAP) {
        plan->lanes = lanes_of(p, limits);
        return wants_any(p->totals) ? kn_work_for_groups(limits, chunks.count)
                                    : kn_work_for_teams(limits, p->outer * p->inner, plan->lanes);
    }
    if (form->walk == KN_ALONG_ROWS && form->stage != KN_ROWS_SCAN) {
        plan->lanes = kn_team_for(chunks.length, 16, kn_work_for_groups(limits, 1).local);
        return kn_work_for_teams(limits, pieces, plan->lanes);
    }
    if (form->stage == KN_ROWS_SCAN)
        return kn_work_for(limits, pieces * p->inner);
    plan->by_columns = kn_divisor_of(across);
    plan->small = pieces * across <= INT32_MAX;
    return form->walk == KN_DOWN_FEW_ROWS ? kn_work_for(limits, pieces * across)
                                          : kn_work_for_groups(limits, pieces * kn_div_up(p->inner, 32));
}

static void write_kernel(kn_text *out, const void *code, const void *form) { kn_rows_write(out, code, form); }

static kn_status launch(kn_stream *stream, const kn_rows_problem *p, kn_rows_stage stage, kn_chunks chunks,
                        const rows_fields *fields)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_rows_form form = form_of(p, stage, chunks, limits);
    const kn_kernel_request request = {.prefix = KN_ROWS_PREFIX,
                                       .name = p->code->name,
                                       .code = p->code,
                                       .form = &form,
                                       .form_size = sizeof form,
                                       .write = write_kernel};
    kn_rows_plan plan = {.outer = p->outer,
                         .n = p->n,
                         .inner = p->inner,
                         .pitch = p->has_strides ? p->pitch : p->n * p->inner,
                         .step = p->has_strides ? p->step : p->inner,
                         .length = chunks.length,
                         .chunks = chunks.count,
                         .lanes = 1,
                         .backwards = p->backwards,
                         .small = p->outer * p->n * p->inner <= INT32_MAX,
                         .by_segment = kn_divisor_of(p->segment),
                         .by_segments = kn_divisor_of(p->segments),
                         .segment = p->segment,
                         .segments = p->segments};
    const kn_user_source *kernel;
    kn_arg args[MAX_ARGS];
    int count;

    KN_TRY(kn_written_kernel_get(&kernel, &p->code->kernels, &request));
    const kn_work_size work =
        limits->is_cpu ? work_on_cpu(limits, p, chunks) : work_on_gpu(limits, p, &form, chunks, &plan);
    count = add_outputs(args, p, fields, &form);
    count += add_inputs(args + count, p, fields, &form);
    args[count++] = kn_arg_struct(&plan, sizeof plan);
    for (int i = 0; p->code->numbers && p->code->numbers[i]; i++)
        args[count++] = kn_arg_f64_or_f32(p->compute == KN_F64, p->numbers[i]);
    if (p->code->index) {
        args[count++] = kn_arg_i64(p->ignored);
        args[count++] = kn_arg_fault();
    }
    return kn_run(stream, .source = kernel->path,
                  .options = kn_written_kernel_options(p->compute == KN_F64, uses_f64(p)), .kernel = kernel->name,
                  .operation = p->operation, .dims = 1, .global = {work.global}, .local = {work.local}, .args = args,
                  .num_args = count);
}

/* Kernels load fields in vectors of up to 16, and so beyond the last. */
#define WHOLE_VECTOR (16 * sizeof(double))

/* The first of two launches leaves `count` states of the rest's code, which the second merges. */
static kn_status launch_twice(kn_stream *stream, const kn_rows_problem *p, kn_rows_stage stage, kn_chunks chunks,
                              const kn_rows_problem *rest, int64_t count)
{
    rows_fields fields = {.count = (count + 1) / 2 * 2}; /* int64 after float is aligned */
    const size_t size =
        WHOLE_VECTOR + (size_t)fields.count * ((size_t)count_fields(rest->code) * kn_dtype_size(p->compute) +
                                               (wants_place(rest) ? sizeof(int64_t) : 0));

    KN_TRY(kn_buffer_alloc(&fields.buffer, stream, size));
    kn_status status = launch(stream, p, stage, chunks, &fields);
    if (status == KN_OK && p->scans)
        status = launch(stream, p, KN_ROWS_SCAN, chunks, &fields);
    else if (status == KN_OK)
        status = launch(stream, rest, KN_ROWS_COMBINED, (kn_chunks){.length = rest->n, .count = 1}, &fields);
    kn_buffer_free(fields.buffer);
    return status;
}

static kn_status run_in_chunks(kn_stream *stream, const kn_rows_problem *p, kn_chunks chunks)
{
    kn_rows_problem rest = *p;
    rest.n = chunks.count;
    rest.has_strides = false;
    return launch_twice(stream, p, KN_ROWS_PARTIAL, chunks, &rest, p->outer * chunks.count * p->inner);
}

static kn_status run_map(kn_stream *stream, const kn_rows_problem *p)
{
    kn_chunks parts = {.length = p->n, .count = 1};
    if (wants_any(p->totals)) {
        const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
        parts.count = kn_parts_of_rows(limits, p->outer * p->inner, p->n, p->inner, lanes_of(p, limits));
    }
    if (parts.count == 1)
        return launch(stream, p, KN_ROWS_MAP, parts, NULL);
    kn_rows_problem rest = {.code = p->code->total,
                            .operation = p->operation,
                            .compute = p->compute,
                            .outer = 1,
                            .n = parts.count,
                            .inner = 1};
    memcpy(rest.outputs, p->totals, sizeof rest.outputs);
    return launch_twice(stream, p, KN_ROWS_MAP, parts, &rest, parts.count);
}

/* What p->columns asks for, on its own. */
static kn_rows_problem problem_of_columns(const kn_rows_problem *p)
{
    kn_rows_code *code = p->code->columns;
    kn_rows_problem columns = {
        .code = code, .operation = p->operation, .compute = p->compute, .outer = 1, .n = p->outer, .inner = p->n};
    memcpy(columns.outputs, p->columns, sizeof columns.outputs);
    for (int i = 0; code->inputs[i]; i++)
        columns.inputs[i] = p->inputs[strchr(p->code->inputs, code->inputs[i]) - p->code->inputs];
    return columns;
}

static kn_status run_with_columns(kn_stream *stream, const kn_rows_problem *p)
{
    kn_rows_problem columns = problem_of_columns(p), map = *p;
    const kn_chunks parts = {.length = p->n, .count = kn_parts_of_columns(p->outer)};
    if (p->mapped.dtype && kn_device_limits(kn_stream_device(stream))->is_cpu) {
        columns.n = parts.count;
        return launch_twice(stream, p, KN_ROWS_MAP, parts, &columns, parts.count * p->n);
    }
    memset(map.columns, 0, sizeof map.columns);
    if (p->mapped.dtype)
        KN_TRY(run_map(stream, &map));
    return kn_rows_run(stream, &columns);
}

kn_status kn_rows_run(kn_stream *stream, const kn_rows_problem *problem)
{
    if (problem->outer * problem->inner == 0 || (problem->scans && problem->n == 0))
        return KN_OK;
    if (maps(problem->code))
        return wants_any(problem->columns) ? run_with_columns(stream, problem) : run_map(stream, problem);
    if (problem->n == 0)
        return launch(stream, problem, KN_ROWS_WHOLE, (kn_chunks){.length = 1, .count = 1}, NULL);
    const kn_chunks chunks = kn_split_middle(kn_device_limits(kn_stream_device(stream)), problem->outer, problem->n,
                                             problem->inner, problem->code->takes_long || problem->scans);
    return chunks.count == 1 ? launch(stream, problem, problem->scans ? KN_ROWS_SCAN : KN_ROWS_WHOLE, chunks, NULL)
                             : run_in_chunks(stream, problem, chunks);
}
