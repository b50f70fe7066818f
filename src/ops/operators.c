/* ops/operators.c - see operators.h. */
#include "ops/operators.h"

#include <stdlib.h>
#include <string.h>

#define OPERATOR_ADDRESS(name) &kn_##name##_op,
static const kn_op *const operators[] = {KN_OPERATORS(OPERATOR_ADDRESS)};
enum { COUNT = sizeof operators / sizeof operators[0] };

int kn_operator_count(void) { return COUNT; }

const kn_op *kn_operator_at(int index) { return index >= 0 && index < COUNT ? operators[index] : NULL; }

static int compare(const void *name, const void *entry) { return strcmp(name, (*(const kn_op *const *)entry)->name); }

const kn_op *kn_operator_find(const char *name)
{
    const kn_op *const *found = bsearch(name, operators, COUNT, sizeof operators[0], compare);
    return found ? *found : NULL;
}
