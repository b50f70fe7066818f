/* ops/operators.c - koine/operators.h: the list of operators, what each takes, and calling one. */
#include "ops/dispatch/operators.h"

#include <koine/operators.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/invoke.h"

/* --- the list ----------------------------------------------------------------------------------------------------- */

#define OPERATOR_ADDRESS(name) &kn_##name##_op,
static const kn_op *const operators[] = {KN_OPERATORS(OPERATOR_ADDRESS)};
enum { COUNT = sizeof operators / sizeof operators[0] };

int kn_op_count(void) { return COUNT; }

const kn_op *kn_op_at(int index) { return index >= 0 && index < COUNT ? operators[index] : NULL; }

static int compare(const void *name, const void *entry) { return strcmp(name, (*(const kn_op *const *)entry)->name); }

const kn_op *kn_op_find(const char *name)
{
    const kn_op *const *found = name ? bsearch(name, operators, COUNT, sizeof operators[0], compare) : NULL;
    return found ? *found : NULL;
}

/* --- one operator ------------------------------------------------------------------------------------------------- */

static int count_names(const char *const *names, int most)
{
    int count = 0;
    while (count < most && names[count])
        count++;
    return count;
}

kn_op_info kn_op_describe(const kn_op *op)
{
    if (!op)
        return (kn_op_info){.name = NULL};
    const int outputs = count_names(op->outputs, KN_OP_MAX_OUTPUTS);
    const kn_op_params *params = kn_op_params_of(op);
    return (kn_op_info){.name = op->name,
                        .num_inputs = count_names(op->inputs, KN_OP_MAX_INPUTS),
                        .num_outputs = outputs > 0 ? outputs : 1,
                        .num_params = params->count,
                        .params_size = params->size,
                        .is_differentiable = op->backward != NULL || kn_op_is_composition(op),
                        .is_twice_differentiable = op->backward_recorded != NULL || kn_op_is_composition(op),
                        .is_view = op->is_view,
                        .in_place = op->in_place};
}

kn_op_input kn_op_input_at(const kn_op *op, int index)
{
    if (index < 0 || index >= kn_op_describe(op).num_inputs)
        return (kn_op_input){.name = NULL};
    const char *name = op->inputs[index];
    const unsigned first = op->dtypes[0] ? op->dtypes[0] : KN_DTYPES_ALL;
    return (kn_op_input){.name = name[0] == '?' || name[0] == '*' ? name + 1 : name,
                         .is_optional = name[0] == '?',
                         .is_list = name[0] == '*',
                         .dtypes = op->dtypes[index] ? op->dtypes[index] : first};
}

const char *kn_op_output_at(const kn_op *op, int index)
{
    if (index < 0 || index >= kn_op_describe(op).num_outputs)
        return NULL;
    return op->outputs[index] ? op->outputs[index] : "result";
}

const kn_op_param *kn_op_param_at(const kn_op *op, int index)
{
    return op && index >= 0 && index < kn_op_params_of(op)->count ? &kn_op_params_of(op)->rows[index] : NULL;
}

void kn_op_params_init(const kn_op *op, void *params)
{
    if (op && params && kn_op_params_of(op)->size > 0)
        memcpy(params, kn_op_params_of(op)->defaults, kn_op_params_of(op)->size);
}

/* --- calling ------------------------------------------------------------------------------------------------------ */

kn_status kn_op_call(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_tensor **outputs,
                     int num_outputs)
{
    if (!op)
        return kn_fail(KN_ERR_ARGUMENT, "kn_op_call: argument `op` is NULL: kn_op_find knew no operator of that name");
    const kn_op_info info = kn_op_describe(op);
    const bool is_list = kn_op_input_at(op, info.num_inputs - 1).is_list;
    if (num_inputs < 0 || (num_inputs > info.num_inputs && !is_list))
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d inputs: it takes at most %d", op->name, num_inputs, info.num_inputs);
    if (num_outputs < 0 || num_outputs > info.num_outputs)
        return kn_fail(KN_ERR_ARGUMENT, "%s: room for %d outputs: it has %d", op->name, num_outputs, info.num_outputs);
    if (num_inputs > 0 && !inputs)
        return kn_fail_argument_null(op->name, "inputs");
    if (num_outputs > 0 && !outputs)
        return kn_fail_argument_null(op->name, "outputs");
    kn_tensor *all[KN_OP_MAX_INPUTS] = {NULL}, *given[KN_OP_MAX_OUTPUTS];
    if (!is_list) { /* those omitted at the end, too */
        for (int i = 0; i < num_inputs; i++)
            all[i] = inputs[i];
        inputs = all;
        num_inputs = info.num_inputs;
    }
    for (int i = 0; i < num_outputs; i++)
        given[i] = outputs[i];
    const kn_status status = kn_op_invoke_to(op, inputs, num_inputs, params, outputs, num_outputs);
    for (int i = 0; status != KN_OK && i < num_outputs; i++)
        outputs[i] = given[i];
    return status;
}
