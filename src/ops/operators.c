/* ops/operators.c - koine/operators.h: the list of operators, and calling one. */
#include "ops/dispatch/operators.h"

#include <koine/operators.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/invoke.h"
#include "ops/in_place.h"

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
    return found ? *found : name ? kn_in_place_find(name) : NULL;
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
