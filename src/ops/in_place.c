/* ops/in_place.c - see in_place.h. The descriptors are made from those of the operators when the library is loaded. */
#include "ops/in_place.h"

#include <koine/autograd.h>
#include <koine/in_place.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autocast.h"
#include "autograd/tape.h"
#include "autograd/view.h"
#include "base/load.h"
#include "ops/dispatch/operators.h"
#include "ops/dispatch/promote.h"
#include "ops/pointwise/elementwise.h"

typedef struct form_row {
    const char *name;
    const kn_op *of;
    enum { DIRECT, STORED } how;
} form_row;

#define FORM_ROW(id, arguments, how) {#id "_", &kn_##id##_op, how},
#define FORM_INDEX(id, arguments, how) FORM_##id,
static const form_row rows[] = {KN_IN_PLACE_FORMS(FORM_ROW)};
enum { KN_IN_PLACE_FORMS(FORM_INDEX) COUNT };

static kn_op forms[COUNT], stores[COUNT];

/* --- direct: the kernel writes to its first operand --------------------------------------------------------------- */

/* The old value does not affect the result. */
static kn_status backward_of_truth(kn_grad_call *grad)
{
    return kn_status_of(grad->grad_inputs[0] = kn_zeros_like(grad->grad_outputs[0]));
}

static kn_op direct(const form_row *row)
{
    const kn_elementwise_rule rule = ((const kn_elementwise *)row->of->detail)->rule;
    kn_op op = *row->of;
    op.name = row->name;
    op.in_place = true;
    op.shape = kn_elementwise_shape_in_place;
    if (rule == KN_REAL)
        op.dtypes[0] = op.dtypes[1] = KN_DTYPES_FLOATING;
    if (rule == KN_COMPARES)
        op.backward = op.backward_recorded = backward_of_truth;
    return op;
}

/* --- stored: the result is copied to the first input -------------------------------------------------------------- */

KN_ELEMENTWISE_TABLE(store, KN_ANY, "ab", NULL, KN_NO_VECTORS, "b", KN_GRADIENTS("(T)0", "g"), b,
                     .recorded = {"g * 0"});
#define STORE_OP(name) KN_ELEMENTWISE_OP(name, true, true, &store_table, KN_DTYPES_ALL, KN_NO_PARAMS, "x", "result")

/* What to compute with: x, or, if anything is recorded, a copy, which may be saved for the backward pass. */
static kn_tensor *value_of(kn_tensor *x, kn_tensor *const *others, int count)
{
    bool is_recorded = x && kn_change_wants_record(x);
    for (int i = 0; i < count; i++)
        is_recorded |= others[i] && kn_autograd_wants(others[i]);
    return is_recorded && kn_grad_enabled() ? kn_clone(x) : x;
}

static kn_status check_shape(const kn_tensor *x, const kn_tensor *result)
{
    char has[KN_DESCRIBE], wanted[KN_DESCRIBE];
    return kn_same_shape(x, result)
               ? KN_OK
               : kn_fail(KN_ERR_SHAPE, "the result, %s, does not fit in place into %s",
                         kn_tensor_describe(has, sizeof has, result), kn_tensor_describe(wanted, sizeof wanted, x));
}

/* The result becomes the second input of the op that stores it. As in PyTorch, autocast leaves x's dtype alone. */
static kn_status store_enter(kn_entry *entry)
{
    const int i = (int)(entry->op - forms);
    kn_tensor *x = entry->inputs[0], *result = NULL;

    if (!(entry->inputs[0] = value_of(x, entry->inputs + 1, entry->num_inputs - 1)))
        return kn_error_status();
    const kn_dtype autocast = kn_autocast_pause();
    const kn_status status = kn_op_invoke_to(rows[i].of, entry->inputs, entry->num_inputs, entry->params, &result, 1);
    kn_autocast_resume(autocast);
    KN_TRY(status);
    KN_TRY(check_shape(x, result));
    (void)kn_entry_record(entry, sizeof(kn_scalar_args)); /* what is stored has no numbers */
    entry->op = &stores[i];
    entry->inputs[0] = x;
    entry->inputs[1] = result;
    entry->num_inputs = 2;
    return KN_OK;
}

static kn_op stored(const form_row *row)
{
    kn_op op = {.name = row->name, .params = row->of->params, .composes = true, .in_place = true, .enter = store_enter};
    memcpy(op.inputs, row->of->inputs, sizeof op.inputs);
    memcpy(op.dtypes, row->of->dtypes, sizeof op.dtypes);
    return op;
}

/* For functions that are not operators: x changed to `result`, which was computed from its value_of. */
static kn_tensor *store(const kn_op *op, kn_tensor *x, kn_tensor *result)
{
    if (!kn_check_argument(op->name, "x", x) || !result)
        return NULL;
    if (check_shape(x, result) == KN_OK)
        return kn_invoke(op, NULL, x, result);
    return kn_error_prefix("%s", op->name), kn_error_make_sticky();
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

KN_AT_LOAD make_forms(void)
{
    for (int i = 0; i < COUNT; i++) {
        forms[i] = rows[i].how == DIRECT ? direct(&rows[i]) : stored(&rows[i]);
        stores[i] = (kn_op)STORE_OP(rows[i].name);
    }
}

static int compare(const void *name, const void *row) { return strcmp(name, ((const form_row *)row)->name); }

const kn_op *kn_in_place_find(const char *name)
{
    const form_row *row = bsearch(name, rows, COUNT, sizeof rows[0], compare);
    return row ? &forms[row - rows] : NULL;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

#define ONE(id)                                                                                                        \
    kn_tensor *kn_##id##_(kn_tensor *x) { return kn_invoke(&forms[FORM_##id], NULL, x); }
#define TWO(id)                                                                                                        \
    kn_tensor *kn_##id##_(kn_tensor *a, kn_tensor *b) { return kn_invoke(&forms[FORM_##id], NULL, a, b); }
#define NUMBER(id)                                                                                                     \
    kn_tensor *kn_##id##_with_(kn_tensor *a, kn_scalar b)                                                              \
    {                                                                                                                  \
        return kn_invoke(&forms[FORM_##id], &(kn_scalar_args){{b}}, a);                                                \
    }
#define PARAMS(id)                                                                                                     \
    kn_tensor *kn_##id##_with_(kn_tensor *x, const kn_##id##_params *params)                                           \
    {                                                                                                                  \
        return kn_invoke(&forms[FORM_##id], params, x);                                                                \
    }
#define OTHER(id)
#define FORM_FUNCTION(id, arguments, how) arguments(id)
KN_IN_PLACE_FORMS(FORM_FUNCTION)
ONE(bitwise_not)
TWO(float_power)

static kn_tensor *of_two_numbers(const kn_op *op, kn_tensor *x, double p, double q)
{
    const kn_scalar_args args = {{kn_scalar_nearest(p), kn_scalar_nearest(q)}};
    return kn_invoke(op, &args, x);
}

kn_tensor *kn_clamp_with_(kn_tensor *x, const kn_clamp_params *params)
{
    const kn_clamp_params p = params ? *params : kn_clamp_params_init();
    return of_two_numbers(&forms[FORM_clamp], x, p.min, p.max);
}

kn_tensor *kn_hardtanh_(kn_tensor *x, double min_val, double max_val)
{
    return of_two_numbers(&forms[FORM_hardtanh], x, min_val, max_val);
}

kn_tensor *kn_threshold_(kn_tensor *x, double threshold, double value)
{
    return of_two_numbers(&forms[FORM_threshold], x, threshold, value);
}

kn_tensor *kn_polygamma_(int n, kn_tensor *x)
{
    return kn_invoke(&forms[FORM_polygamma], &(kn_scalar_args){{kn_scalar_int(n)}}, x);
}

kn_tensor *kn_mvlgamma_(kn_tensor *x, int p) { return kn_invoke(&forms[FORM_mvlgamma], &(kn_mvlgamma_args){p}, x); }

kn_tensor *kn_div_mode_(kn_tensor *a, kn_tensor *b, kn_rounding rounding_mode)
{
    return kn_invoke(&forms[FORM_div_mode], &(kn_rounding_args){rounding_mode}, a, b);
}

kn_tensor *kn_lerp_(kn_tensor *a, kn_tensor *b, kn_tensor *weight)
{
    return kn_invoke(&forms[FORM_lerp], NULL, a, b, weight);
}

kn_tensor *kn_lerp_scalar_(kn_tensor *a, kn_tensor *b, double weight)
{
    return kn_invoke(&forms[FORM_lerp_scalar], &(kn_scalar_args){{kn_scalar_real(weight)}}, a, b);
}

#define THREE(id, type)                                                                                                \
    kn_tensor *kn_##id##_with_(kn_tensor *a, kn_tensor *b, kn_tensor *c, const type *params)                           \
    {                                                                                                                  \
        return kn_invoke(&forms[FORM_##id], params, a, b, c);                                                          \
    }
THREE(addcmul, kn_addcmul_params)
THREE(addcdiv, kn_addcmul_params)
THREE(addmm, kn_addmm_params)
THREE(addmv, kn_addmm_params)
THREE(addr, kn_addmm_params)
THREE(baddbmm, kn_addmm_params)
THREE(addbmm, kn_addmm_params)

kn_tensor *kn_cumsum_(kn_tensor *x, int dim) { return kn_invoke(&forms[FORM_cumsum], &(kn_dim_args){dim}, x); }
kn_tensor *kn_cumprod_(kn_tensor *x, int dim) { return kn_invoke(&forms[FORM_cumprod], &(kn_dim_args){dim}, x); }
kn_tensor *kn_tril_(kn_tensor *x, int64_t diagonal)
{
    return kn_invoke(&forms[FORM_tril], &(kn_triangle_args){diagonal}, x);
}

kn_tensor *kn_triu_(kn_tensor *x, int64_t diagonal)
{
    return kn_invoke(&forms[FORM_triu], &(kn_triangle_args){diagonal}, x);
}

#define REDUCING(id)                                                                                                   \
    kn_tensor *kn_##id##_with_(kn_tensor *x, int dim, kn_tensor *index, kn_tensor *source,                             \
                               kn_scatter_reduction reduce, const kn_scatter_reduce_params *params)                    \
    {                                                                                                                  \
        const kn_scatter_reduce_args args = {dim, reduce, !params || params->include_self};                            \
        return kn_invoke(&forms[FORM_##id], &args, x, index, source);                                                  \
    }
REDUCING(scatter_reduce)
REDUCING(index_reduce)

/* Compositions release what they make. */
#define COMPOSED(id, x, ...)                                                                                           \
    static const kn_op op = STORE_OP(#id "_");                                                                         \
    const int depth = kn_scope_begin();                                                                                \
    kn_tensor *changed = depth > 0 ? store(&op, x, kn_##id(value_of(x, NULL, 0), __VA_ARGS__)) : NULL;                 \
    kn_scope_end(depth);                                                                                               \
    return changed

kn_tensor *kn_renorm_(kn_tensor *x, double p, int dim, double maxnorm) { COMPOSED(renorm, x, p, dim, maxnorm); }

kn_tensor *kn_masked_scatter_(kn_tensor *x, kn_tensor *mask, kn_tensor *source)
{
    COMPOSED(masked_scatter, x, mask, source);
}
