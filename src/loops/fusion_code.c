/* loops/fusion_code.c - the code of fused operations: theirs, one block after another, each with its own letters. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "loops/fusion_kernel.h"

static const char input_letters[] = "abcdefghijklmnop";
static const char number_letters[] = "qrstuvwxyzABC";
_Static_assert(sizeof input_letters > KN_POINTWISE_INPUTS, "a letter for each input");
_Static_assert(sizeof number_letters > KN_POINTWISE_NUMBERS + 1, "a letter for each number");

/* --- the code ----------------------------------------------------------------------------------------------------- */

static bool is_computed_as(const kn_fused *k, kn_dtype dtype)
{
    return dtype == k->p.compute || kn_dtype_is_reduced(dtype);
}

/* An input's letter in its part, with the value of the kernel's input or of the part that makes it. */
static void write_input(kn_text *out, const kn_fused *k, int member, int i)
{
    const kn_part *part = k->members[member];
    const kn_operand *operand = &part->p.inputs[i];
    const kn_part_link from = part->from[i];
    const bool raw = kn_part_reads_raw(part, i);
    const char *type = raw ? kn_dtype_cl(kn_compute_type(operand->dtype)) : "T";
    kn_text_format(out, "const %s %c = ", type, part->p.code->inputs[i]);
    if (!from.part)
        kn_text_format(out, KN_POINTWISE_USER_PREFIX "%c; ", input_letters[k->input[member][i]]);
    else if (k->vectors)
        kn_text_format(out, "kn_f%d_%d; ", kn_fused_index_of(k, from.part), from.output);
    else
        kn_text_format(out, "(%s)KN_ROUND_%s(kn_f%d_%d); ", type, kn_dtype_kind(operand->rounded),
                       kn_fused_index_of(k, from.part), from.output);
}

/* A value as it would be in memory. */
static void write_value(kn_text *out, const kn_fused *k, int member, int i)
{
    const kn_pointwise_problem *p = &k->members[member]->p;
    const kn_dtype dtype = p->outputs[i].dtype;
    const char *value = p->code->values[i], *kind = kn_store_kind((int)k->p.compute, (int)dtype);
    kn_text_format(out, "kn_f%d_%d = ", member, i);
    if (dtype == k->p.compute && kn_dtype_is_floating(dtype))
        kn_text_format(out, "KN_KEEP((T)(%s)); ", value);
    else if (kn_dtype_is_reduced(dtype))
        kn_text_format(out, "%sROUND_%s(%s); ", k->vectors ? "KN_VECTOR_" : "KN_", kind, value);
    else if (dtype == KN_BOOL)
        kn_text_format(out, "(%s) != 0; ", value);
    else if (strcmp(kind, "WHOLE") == 0)
        kn_text_format(out, "KN_TO_WHOLE(%s, %s); ", kn_dtype_cl(dtype), value);
    else
        kn_text_format(out, "(%s)(%s); ", kn_dtype_cl(dtype), value);
}

static void write_member(kn_text *out, const kn_fused *k, int member)
{
    const kn_part *part = k->members[member];
    const kn_pointwise_code *code = part->p.code;
    for (int i = 0; i < part->p.num_outputs; i++)
        if (part->p.outputs[i].dtype && kn_fused_is_used(k, part, i))
            kn_text_format(out, "%s kn_f%d_%d; ",
                           is_computed_as(k, part->p.outputs[i].dtype) ? "T" : kn_dtype_cl(part->p.outputs[i].dtype),
                           member, i);
    kn_text_append(out, "{ ");
    for (int i = 0; i < part->p.num_inputs; i++)
        if (part->p.inputs[i].dtype)
            write_input(out, k, member, i);
    for (int i = 0; code->numbers && code->numbers[i]; i++) {
        const char type = code->number_types ? code->number_types[i] : 'T';
        kn_text_format(out, "const %s %c = " KN_POINTWISE_USER_PREFIX "%c; ", type == 'T' ? "T" : kn_number_type(type),
                       code->numbers[i], number_letters[k->number[member] + i]);
    }
    if (code->statements)
        kn_text_format(out, "%s ", code->statements);
    for (int i = 0; i < part->p.num_outputs; i++)
        if (part->p.outputs[i].dtype && kn_fused_is_used(k, part, i))
            write_value(out, k, member, i);
    kn_text_append(out, "} ");
}

/* Compilers may make one operation of a product and a sum, also when they were different operators'. KN_KEEP lets no
 * value through unrounded: it changes its bits by a number that is 0, which the compiler does not know. */
static void write_functions(kn_text *out, const kn_fused *k, const kn_limits *limits)
{
    char width[12] = "";
    if (k->vectors)
        snprintf(width, sizeof width, "%d", kn_pointwise_vector_width(limits, k->p.compute));
    const char *real = k->p.compute == KN_F64 ? "double" : "float", *whole = k->p.compute == KN_F64 ? "long" : "int";
    if (kn_dtype_is_floating(k->p.compute))
        kn_text_format(out, "#define KN_KEEP(v) as_%s%s(as_%s%s(v) ^ (%s%s)" KN_POINTWISE_USER_PREFIX "%c)\n", real,
                       width, whole, width, whole, width, number_letters[k->num_numbers]);
    for (int m = 0; m < k->count; m++) {
        const char *functions = k->members[m]->p.code->functions;
        bool is_new = functions != NULL;
        for (int n = 0; n < m && is_new; n++)
            is_new = !k->members[n]->p.code->functions || strcmp(k->members[n]->p.code->functions, functions) != 0;
        if (is_new)
            kn_text_append(out, functions);
    }
}

/* --- the codes made so far, for good like their kernels ----------------------------------------------------------- */

typedef struct fused_code {
    kn_pointwise_code code;
    char *key; /* all of the texts */
    char *functions, *statements, *operation;
    char name[48], inputs[KN_POINTWISE_INPUTS + 1], raw[KN_POINTWISE_INPUTS + 1], numbers[KN_POINTWISE_NUMBERS + 1],
        number_types[KN_POINTWISE_NUMBERS + 1], values[KN_POINTWISE_OUTPUTS][24];
    uint32_t hash;
    struct fused_code *next;
} fused_code;

#define BUCKETS 256
static struct {
    kn_mutex lock;
    fused_code *buckets[BUCKETS];
} made = {.lock = KN_MUTEX_INIT};

/* "fused: mul, add, tanh", and "fused_mul_add_tanh". */
static void write_names(const kn_fused *k, kn_text *operation, char *name, size_t size)
{
    size_t length = (size_t)snprintf(name, size, "fused");
    kn_text_append(operation, "fused: ");
    for (int m = 0; m < k->count; m++) {
        const kn_pointwise_problem *p = &k->members[m]->p;
        kn_text_format(operation, "%s%s", m ? ", " : "", p->operation ? p->operation : p->code->name);
        if (length < size)
            length += (size_t)snprintf(name + length, size - length, "_%s", p->code->name);
    }
}

static void write_texts(fused_code *c, const kn_fused *k, const kn_limits *limits)
{
    kn_text functions = {0}, statements = {0}, operation = {0}, key = {0};
    write_names(k, &operation, c->name, sizeof c->name);
    write_functions(&functions, k, limits);
    for (int m = 0; m < k->count; m++)
        write_member(&statements, k, m);
    for (int i = 0; i < k->p.num_outputs; i++)
        snprintf(c->values[i], sizeof c->values[i], "kn_f%d_%d", kn_fused_index_of(k, k->outputs[i].part),
                 k->outputs[i].output);
    int raw = 0;
    for (int i = 0; i < k->p.num_inputs; i++) {
        c->inputs[i] = input_letters[i];
        if (k->raw[i])
            c->raw[raw++] = input_letters[i];
    }
    memcpy(c->numbers, number_letters, (size_t)k->num_numbers + 1);
    memcpy(c->number_types, k->number_types, (size_t)k->num_numbers);
    c->number_types[k->num_numbers] = k->p.compute == KN_F64 ? 'l' : 'i';
    c->functions = kn_text_finish(&functions);
    c->statements = kn_text_finish(&statements);
    c->operation = kn_text_finish(&operation);
    kn_text_format(&key, "%s\n%s\n%s\n%s %s %s %d", c->operation ? c->operation : "", c->functions ? c->functions : "",
                   c->statements ? c->statements : "", c->inputs, c->raw, c->number_types, k->vectors);
    for (int i = 0; i < k->p.num_outputs; i++)
        kn_text_format(&key, " %s", c->values[i]);
    c->key = kn_text_finish(&key);
}

static void free_code(fused_code *c)
{
    kn_free(c->key);
    kn_free(c->functions);
    kn_free(c->statements);
    kn_free(c->operation);
    kn_free(c);
}

static void fill_code(fused_code *c, const kn_fused *k)
{
    c->code = (kn_pointwise_code){.name = c->name,
                                  .functions = c->functions,
                                  .statements = c->statements,
                                  .inputs = c->inputs,
                                  .numbers = c->numbers,
                                  .number_types = c->number_types,
                                  .raw = c->raw,
                                  .vectors = k->vectors ? KN_VECTORS : KN_NO_VECTORS,
                                  .is_fused = true};
    for (int i = 0; i < k->p.num_outputs; i++)
        c->code.values[i] = c->values[i];
}

kn_status kn_fused_find_code(kn_fused *k, const kn_limits *limits)
{
    fused_code *c = kn_calloc(1, sizeof *c);
    if (!c)
        return KN_ERR_MEMORY;
    write_texts(c, k, limits);
    if (!c->functions || !c->statements || !c->operation || !c->key) {
        free_code(c);
        return KN_ERR_MEMORY;
    }
    c->hash = kn_hash_name(c->key, 0);
    kn_lock(&made.lock);
    fused_code **bucket = &made.buckets[c->hash % BUCKETS], *known = *bucket;
    while (known && (known->hash != c->hash || strcmp(known->key, c->key) != 0))
        known = known->next;
    if (!known) {
        fill_code(c, k);
        c->next = *bucket;
        *bucket = known = c;
        c = NULL;
    }
    kn_unlock(&made.lock);
    if (c)
        free_code(c);
    k->p.code = &known->code;
    k->p.operation = known->operation;
    return KN_OK;
}
