/* test_operators.c - the list of operators is in order and whole: each has a name of its own, names its inputs, and has a
 * reference unless it only moves data. */
#include "ops/operators.h"

#include <string.h>

#include "support/check.h"

static void each_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        assert_ptr_equal(kn_op_find(op->name), op);
        if (i > 0)
            assert_true(strcmp(kn_op_at(i - 1)->name, op->name) < 0);
    }
    assert_null(kn_op_find("no_such_operator"));
    assert_null(kn_op_at(-1));
    assert_null(kn_op_at(kn_op_count()));
}

static bool only_moves_data(const char *name)
{
    static const char *const movers[] = {"clone", "contiguous", "reshape", "to_dtype"};
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        if (strcmp(name, movers[i]) == 0)
            return true;
    return false;
}

static void each_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        bool optional = false;
        if (!op->inputs[0] || !op->shape || !op->forward)
            fail_msg("%s has no inputs, shape rule or forward", op->name);
        if (!op->reference && !op->is_view && !only_moves_data(op->name))
            fail_msg("%s has no reference", op->name);
        for (int k = 0; k < KN_OP_MAX_INPUTS && op->inputs[k]; k++) {
            if (optional && op->inputs[k][0] != '?')
                fail_msg("%s: input `%s` comes after an optional one", op->name, op->inputs[k]);
            optional = op->inputs[k][0] == '?';
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_by_its_name),
        cmocka_unit_test(each_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
