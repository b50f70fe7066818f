/* loops/pointwise.c - selects a problem's kernel and launches it. */
#include "loops/pointwise.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "loops/fusion.h"
#include "loops/pointwise_source.h"
#include "loops/pointwise_spread.h"
#include "loops/pointwise_turned.h"
#include "loops/vec4.h"
#include "loops/work_size.h"

kn_pointwise_code kn_copying = {.name = "copy", .inputs = "a", .values = {"a"}, .of_bits = &kn_copying};

/* --- the form ----------------------------------------------------------------------------------------------------- */

static int alias_of(const kn_pointwise_problem *p, const kn_operand *input)
{
    for (int i = 0; i < p->num_outputs; i++)
        if (p->outputs[i].dtype && kn_operand_is_same(&p->outputs[i], input, p->ndim, p->shape))
            return i + 1;
    return 0;
}

static void note_dtypes(kn_pointwise_form *form, const kn_pointwise_problem *p)
{
    memset(form, 0, sizeof *form);
    form->compute = (uint8_t)p->compute;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS && i < p->num_outputs; i++)
        form->outputs[i] = (uint8_t)p->outputs[i].dtype;
    for (int i = 0; i < KN_POINTWISE_INPUTS && i < p->num_inputs; i++) {
        form->inputs[i] = (uint8_t)p->inputs[i].dtype;
        form->rounded[i] = (uint8_t)p->inputs[i].rounded;
        form->aliased[i] = (uint8_t)(p->inputs[i].dtype ? alias_of(p, &p->inputs[i]) : 0);
    }
}

/* The lane with the strides of `operand`, added if missing. */
static int lane_of(kn_layout *layout, const kn_operand *operand)
{
    for (int n = 0; n < layout->lanes; n++)
        if (kn_strides_match(layout->strides[n], operand->strides, layout->ndim, layout->shape))
            return n;
    memcpy(layout->strides[layout->lanes], operand->strides, (size_t)layout->ndim * sizeof(int64_t));
    return layout->lanes++;
}

static void make_layout(kn_layout *layout, kn_pointwise_form *form, const kn_pointwise_problem *p)
{
    layout->ndim = p->ndim;
    layout->lanes = 0;
    memcpy(layout->shape, p->shape, (size_t)p->ndim * sizeof *p->shape);
    lane_of(layout, kn_pointwise_first_output(p));
    for (int i = 0; i < p->num_inputs; i++)
        if (form->inputs[i])
            form->lane[i] = (uint8_t)lane_of(layout, &p->inputs[i]);
    form->lanes = (uint8_t)layout->lanes;
    kn_layout_sort(layout);
    kn_layout_collapse(layout);
}

int kn_pointwise_vector_width(const kn_limits *limits, kn_dtype dtype)
{
    const int native = dtype == KN_F64 ? limits->vector_width_f64 : limits->vector_width_f32;
    return native >= 16 ? 16 : native >= 8 ? 8 : 4;
}

/* What is changed in place is in the caches anyway. Without vectors results are first kept in a variable, which cannot
 * be of float16. */
static bool should_bypass(const kn_pointwise_form *form, const kn_layout *layout, const kn_limits *limits)
{
    size_t bytes = 0; /* per element */
    for (int i = 0; i < KN_POINTWISE_INPUTS; i++) {
        if (form->aliased[i])
            return false;
        if (form->inputs[i] && !form->spread[i])
            bytes += kn_dtype_size((kn_dtype)form->inputs[i]);
    }
    for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++) {
        if (form->outputs[i] == KN_F16 && !form->vector)
            return false;
        bytes += form->outputs[i] ? kn_dtype_size((kn_dtype)form->outputs[i]) : 0;
    }
    return kn_bypasses_caches(limits, (uint64_t)kn_layout_count(layout) * bytes);
}

/* Are operands better packed than read where they are? Those that are broadcast along short runs, single ones of very
 * short runs, and those whose elements are apart. */
enum { SHORT_RUN = 64, SHORT_RUN_OF_ONE = 16, SHORT_RUN_OF_VECTORS = 256 };
static bool should_pack(const kn_pointwise_form *form, const kn_layout *layout)
{
    const int last = layout->ndim - 1;
    if (!kn_pointwise_could_pack(form) || !kn_layout_begins_contiguous(layout))
        return false;
    const int64_t run = last > 0 ? layout->shape[last] : INT64_MAX;
    if (form->vector) /* explicit ones, of which a run's last is seldom whole */
        return run < SHORT_RUN_OF_VECTORS;
    return kn_layout_has_steps(layout) || run < (form->inputs[1] ? SHORT_RUN : SHORT_RUN_OF_ONE);
}

static void choose_walk(kn_pointwise_form *form, const kn_pointwise_problem *p, const kn_layout *layout,
                        const kn_limits *limits)
{
    if (!limits->is_cpu) {
        form->walk = KN_WALK_VEC4;
        return;
    }
    form->walk = kn_layout_is_flat(layout) ? KN_WALK_FLAT : KN_WALK_RUNS;
    for (int i = 0; form->walk == KN_WALK_FLAT && i < p->num_inputs; i++) {
        form->spread[i] = form->inputs[i] && layout->strides[form->lane[i]][0] == 0;
        form->lane[i] = 0;
    }
    if (kn_pointwise_has_vectors(p->code, form))
        form->vector = (uint8_t)kn_pointwise_vector_width(limits, p->compute);
    if (form->walk == KN_WALK_FLAT) {
        form->lanes = 1;
        form->bypass = should_bypass(form, layout, limits);
    }
    if (form->walk == KN_WALK_RUNS && should_pack(form, layout))
        form->walk = KN_WALK_TILES;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static const char *options_of(const kn_pointwise_form *form)
{
    return kn_written_kernel_options(form->compute == KN_F64,
                                     form->compute == KN_F64 || kn_pointwise_has(form, KN_F64));
}

static void write_kernel(kn_text *out, const void *code, const void *form) { kn_pointwise_write(out, code, form); }

static kn_status get_kernel(const kn_user_source **kernel, kn_pointwise_code *code, const kn_pointwise_form *form)
{
    const kn_kernel_request request = {.prefix = KN_POINTWISE_PREFIX,
                                       .name = code->name,
                                       .code = code,
                                       .form = form,
                                       .form_size = sizeof *form,
                                       .write = write_kernel,
                                       .has_user_code = code->has_user_code};
    return kn_written_kernel_get(kernel, &code->kernels, &request);
}

void kn_pointwise_code_free(kn_pointwise_code *code) { kn_written_kernels_free(&code->kernels); }

kn_status kn_pointwise_build(kn_device *device, kn_pointwise_code *code, kn_dtype compute)
{
    kn_pointwise_form form = {.walk = kn_device_limits(device)->is_cpu ? KN_WALK_FLAT : KN_WALK_VEC4,
                              .compute = (uint8_t)compute,
                              .lanes = 1};
    const kn_user_source *kernel;
    for (int i = 0; i < KN_POINTWISE_OUTPUTS && code->values[i]; i++)
        form.outputs[i] = (uint8_t)compute;
    for (int i = 0; code->inputs[i]; i++)
        form.inputs[i] = (uint8_t)compute;
    KN_TRY(get_kernel(&kernel, code, &form));
    return kn_user_source_build(device, kernel->path, options_of(&form), kernel->name, NULL);
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

#define MAX_ARGS (KN_POINTWISE_OUTPUTS + KN_POINTWISE_INPUTS + 1 + KN_POINTWISE_NUMBERS)

/* Truncates towards 0 and clamps to [low, high]; NaN becomes 0. In C, out-of-range and NaN are undefined. */
static int64_t whole_within(kn_scalar number, int64_t low, int64_t high)
{
    if (number.is_whole)
        return number.whole < low ? low : number.whole > high ? high : number.whole;
    if (!(number.real > (double)low))
        return isnan(number.real) ? 0 : low;
    return number.real < (double)high ? (int64_t)number.real : high;
}

/* A number as an element; values out of range of an 8- or 16-bit dtype wrap around. */
static kn_arg element_argument(kn_dtype dtype, kn_scalar number)
{
    kn_arg arg = {.kind = KN_ARG_BYTES, .size = kn_dtype_size(dtype)};
    const int64_t whole = dtype == KN_BOOL ? number.real != 0 : whole_within(number, INT64_MIN, INT64_MAX);
    if (kn_dtype_is_floating(dtype))
        return kn_arg_f64_or_f32(dtype == KN_F64, number.real);
    if (dtype == KN_I64)
        return kn_arg_i64(whole);
    if (dtype == KN_I32)
        return kn_arg_i32(whole_within(number, INT32_MIN, INT32_MAX));
    if (dtype == KN_I16)
        memcpy(&arg.value, &(int16_t){(int16_t)whole}, 2);
    else
        memcpy(&arg.value, &(uint8_t){(uint8_t)whole}, 1);
    return arg;
}

kn_arg kn_number_argument(char type, kn_dtype dtype, kn_scalar number)
{
    const kn_dtype own = type == 'f' ? KN_F32 : type == 'd' ? KN_F64 : type == 'i' ? KN_I32 : KN_I64;
    return element_argument(type == 'T' ? dtype : own, number);
}

/* Of the operands that have an element for each: what is broadcast, a core reads once. */
static size_t bytes_per_element(const kn_pointwise_problem *p, const kn_pointwise_form *form)
{
    size_t bytes = 0;
    for (int i = 0; i < p->num_outputs; i++)
        bytes += form->outputs[i] ? kn_dtype_size(p->outputs[i].dtype) : 0;
    for (int i = 0; i < p->num_inputs; i++) {
        bool read = form->inputs[i] && !form->aliased[i];
        for (int d = 0; d < p->ndim; d++)
            read = read && (p->inputs[i].strides[d] != 0 || p->shape[d] == 1);
        bytes += read ? kn_dtype_size(p->inputs[i].dtype) : 0;
    }
    return bytes;
}

static kn_status launch_on_cpu(kn_stream *stream, kn_launch_params *params, kn_arg *plan, const kn_layout *layout,
                               const kn_pointwise_problem *p, const kn_pointwise_form *form, const kn_limits *limits)
{
    const int64_t count = kn_layout_count(layout);
    params->global[0] = kn_streaming_items_in_place(limits, count, bytes_per_element(p, form));
    kn_runs runs = {.count = count, .ndim = layout->ndim};
    *plan = kn_arg_i64(count);
    if (form->walk == KN_WALK_FLAT)
        return kn_launch(stream, params);
    memcpy(runs.shape, layout->shape, sizeof runs.shape);
    memcpy(runs.strides, layout->strides, sizeof runs.strides);
    *plan = kn_arg_struct(&runs, offsetof(kn_runs, strides) + form->lanes * sizeof runs.strides[0]);
    return kn_launch(stream, params);
}

static bool is_aligned(const kn_operand *operand) { return operand->offset % 4 == 0; }

static kn_status launch_on_gpu(kn_stream *stream, const kn_launch_params *params, int plan, const kn_layout *layout,
                               const kn_pointwise_problem *p, const kn_pointwise_form *form, const kn_limits *limits)
{
    kn_vec4_operands operands = {.layout = *layout};
    for (int n = 0; n < layout->lanes; n++)
        operands.aligned[n] = true;
    for (int i = 0; i < p->num_outputs; i++)
        operands.aligned[0] = operands.aligned[0] && (!p->outputs[i].dtype || is_aligned(&p->outputs[i]));
    for (int i = 0; i < p->num_inputs; i++) {
        if (!form->inputs[i])
            continue;
        operands.aligned[form->lane[i]] = operands.aligned[form->lane[i]] && is_aligned(&p->inputs[i]);
    }
    return kn_launch_vec4(stream, limits, params, plan, &operands);
}

static kn_status launch(kn_stream *stream, const kn_pointwise_problem *p, const kn_pointwise_form *form,
                        const kn_user_source *kernel, const kn_layout *layout, const kn_limits *limits)
{
    kn_arg args[MAX_ARGS];
    int count = 0;

    for (int i = 0; i < p->num_outputs; i++)
        if (p->outputs[i].dtype)
            args[count++] = kn_operand_argument(&p->outputs[i]);
    for (int i = 0; i < p->num_inputs; i++)
        if (form->inputs[i] && !form->aliased[i])
            args[count++] = kn_operand_argument(&p->inputs[i]);
    const int plan = count++;
    for (int i = 0; p->code->numbers && p->code->numbers[i]; i++)
        args[count++] =
            kn_number_argument(p->code->number_types ? p->code->number_types[i] : 'T', p->compute, p->numbers[i]);
    kn_launch_params params = {.source = kernel->path,
                               .options = options_of(form),
                               .kernel = kernel->name,
                               .operation = p->operation,
                               .dims = 1,
                               .args = args,
                               .num_args = count};
    return limits->is_cpu ? launch_on_cpu(stream, &params, &args[plan], layout, p, form, limits)
                          : launch_on_gpu(stream, &params, plan, layout, p, form, limits);
}

/* What a problem takes on a device. */
typedef struct choice {
    const kn_limits *limits;
    const kn_user_source *kernel;
    kn_pointwise_form form;
    kn_layout layout;
} choice;

static void choose(choice *c, kn_device *device, const kn_pointwise_problem *problem)
{
    c->limits = kn_device_limits(device);
    note_dtypes(&c->form, problem);
    make_layout(&c->layout, &c->form, problem);
    choose_walk(&c->form, problem, &c->layout, c->limits);
}

static kn_status enqueue(kn_stream *stream, const kn_pointwise_problem *problem, choice *c)
{
    KN_TRY(get_kernel(&c->kernel, problem->code, &c->form));
    return launch(stream, problem, &c->form, c->kernel, &c->layout, c->limits);
}

static kn_status enqueue_turned(kn_stream *stream, const kn_pointwise_problem *problem)
{
    kn_turned turned;
    choice c;
    kn_status status = kn_turned_begin(&turned, stream, problem);
    if (status == KN_OK) {
        choose(&c, kn_stream_device(stream), &turned.p);
        status = enqueue(stream, &turned.p, &c);
    }
    kn_turned_end(&turned);
    return status;
}

static kn_status enqueue_spread(kn_stream *stream, const kn_pointwise_problem *problem)
{
    kn_spread spread;
    kn_status status = kn_spread_begin(&spread, stream, problem);
    if (status == KN_OK && (status = kn_pointwise_enqueue(stream, &spread.distinct)) == KN_OK)
        status = kn_pointwise_enqueue(stream, &spread.copy);
    kn_spread_end(&spread);
    return status;
}

static bool has_bits(const kn_operand *operand, kn_dtype dtype)
{
    return !operand->dtype || (operand->dtype == dtype && !operand->rounded);
}

/* Can the problem be computed from the bits of halves? Then `changed` is that problem. */
static bool is_of_bits(kn_pointwise_problem *changed, const kn_pointwise_problem *p)
{
    const kn_dtype dtype = kn_pointwise_first_output(p)->dtype;
    bool suits = p->code->of_bits && kn_dtype_is_reduced(dtype);
    for (int i = 0; i < p->num_inputs && suits; i++)
        suits = has_bits(&p->inputs[i], dtype);
    if (!suits)
        return false;
    *changed = *p;
    changed->code = p->code->of_bits;
    changed->compute = KN_I16;
    changed->outputs[0].dtype = KN_I16;
    for (int i = 0; i < p->num_inputs; i++)
        changed->inputs[i].dtype = p->inputs[i].dtype ? KN_I16 : KN_DTYPE_DEFAULT;
    return true;
}

kn_status kn_pointwise_enqueue(kn_stream *stream, const kn_pointwise_problem *problem)
{
    choice c;
    kn_pointwise_problem changed;
    if (is_of_bits(&changed, problem))
        problem = &changed;
    if (kn_pointwise_spreads(kn_device_limits(kn_stream_device(stream)), problem))
        return enqueue_spread(stream, problem);
    choose(&c, kn_stream_device(stream), problem);
    if (c.limits->is_cpu && c.form.walk != KN_WALK_FLAT && kn_pointwise_turns(c.limits, problem))
        return enqueue_turned(stream, problem);
    return enqueue(stream, problem, &c);
}

bool kn_pointwise_builds(kn_device *device, const kn_pointwise_problem *problem)
{
    choice c;
    KN_PRESERVE_ERROR;
    choose(&c, device, problem);
    return get_kernel(&c.kernel, problem->code, &c.form) == KN_OK &&
           kn_user_source_tries(device, c.kernel->path, options_of(&c.form), c.kernel->name);
}

kn_vector_style kn_pointwise_style(const kn_limits *limits, const kn_pointwise_problem *problem)
{
    kn_pointwise_form form;
    note_dtypes(&form, problem);
    if (!limits->is_cpu)
        return KN_STYLE_ANY;
    if (kn_pointwise_has_vectors(problem->code, &form))
        return KN_STYLE_VECTORS;
    return kn_pointwise_could_have_vectors(problem->code, &form) ? KN_STYLE_ANY : KN_STYLE_ELEMENTS;
}

kn_status kn_pointwise_run(kn_stream *stream, const kn_pointwise_problem *problem)
{
    bool deferred;
    for (int d = 0; d < problem->ndim; d++)
        if (problem->shape[d] == 0)
            return KN_OK;
    KN_TRY(kn_fusion_take(stream, problem, &deferred));
    return deferred ? KN_OK : kn_pointwise_enqueue(stream, problem);
}
