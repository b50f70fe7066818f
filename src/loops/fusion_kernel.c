/* loops/fusion_kernel.c - one pointwise problem from several: its code is theirs, one block after another, each with
 * its own letters. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "loops/fusion_parts.h"
#include "loops/pointwise_source.h"

static const char input_letters[] = "abcdefghijklmnop";
static const char number_letters[] = "qrstuvwxyzABC";
_Static_assert(sizeof input_letters > KN_POINTWISE_INPUTS, "a letter for each input");
_Static_assert(sizeof number_letters > KN_POINTWISE_NUMBERS + 1, "a letter for each number");

/* The kernel in the making: the problem without its code. */
typedef struct fused {
    kn_part *members[KN_FUSION_MEMBERS];
    int count;
    kn_pointwise_problem p;
    uint8_t input[KN_FUSION_MEMBERS][KN_POINTWISE_INPUTS]; /* of p, where it is memory */
    int number[KN_FUSION_MEMBERS];                         /* the first of each member's */
    char number_types[KN_POINTWISE_NUMBERS + 1];
    bool raw[KN_POINTWISE_INPUTS];
    int num_numbers;
    kn_part_link outputs[KN_POINTWISE_OUTPUTS];
    bool vectors;
} fused;

/* --- gathering ---------------------------------------------------------------------------------------------------- */

static bool is_raw(const kn_pointwise_code *code, int i) { return code->raw && strchr(code->raw, code->inputs[i]); }

/* The input of the kernel for input i of a part, added if missing. False: there are too many. */
static bool add_input(fused *k, int member, int i)
{
    const kn_pointwise_problem *p = &k->members[member]->p;
    const kn_operand *operand = &p->inputs[i];
    int n = 0;
    while (n < k->p.num_inputs && !(kn_operand_is_same(&k->p.inputs[n], operand, p->ndim, p->shape) &&
                                    k->p.inputs[n].rounded == operand->rounded && k->raw[n] == is_raw(p->code, i)))
        n++;
    if (n == KN_POINTWISE_INPUTS)
        return false;
    if (n == k->p.num_inputs) {
        k->p.inputs[k->p.num_inputs++] = *operand;
        k->raw[n] = is_raw(p->code, i);
    }
    k->input[member][i] = (uint8_t)n;
    return true;
}

static bool add_outputs(fused *k, kn_part *part)
{
    for (int i = 0; i < part->p.num_outputs; i++) {
        if (!part->stores[i])
            continue;
        if (k->p.num_outputs == KN_POINTWISE_OUTPUTS ||
            (k->p.num_outputs > 0 &&
             !kn_strides_match(k->p.outputs[0].strides, part->p.outputs[i].strides, k->p.ndim, k->p.shape)))
            return false;
        k->outputs[k->p.num_outputs] = (kn_part_link){part, i};
        k->p.outputs[k->p.num_outputs++] = part->p.outputs[i];
    }
    return true;
}

/* The last number is the kernel's own. */
static bool add_numbers(fused *k, int member)
{
    const kn_pointwise_problem *p = &k->members[member]->p;
    const int count = p->code->numbers ? (int)strlen(p->code->numbers) : 0;
    if (k->num_numbers + count >= KN_POINTWISE_NUMBERS)
        return false;
    k->number[member] = k->num_numbers;
    for (int i = 0; i < count; i++) {
        k->number_types[k->num_numbers] = p->code->number_types ? p->code->number_types[i] : 'T';
        k->p.numbers[k->num_numbers++] = p->numbers[i];
    }
    return true;
}

static int count_lanes(const fused *k)
{
    const kn_operand *different[1 + KN_POINTWISE_INPUTS] = {&k->p.outputs[0]};
    int lanes = 1;
    for (int i = 0; i < k->p.num_inputs; i++) {
        int n = 0;
        while (n < lanes && !kn_strides_match(different[n]->strides, k->p.inputs[i].strides, k->p.ndim, k->p.shape))
            n++;
        if (n == lanes)
            different[lanes++] = &k->p.inputs[i];
    }
    return lanes;
}

/* Could a text define what the other uses? */
static bool disagree(const char *a, const char *b)
{
    if (!a || !b || strcmp(a, b) == 0)
        return false;
    if (strstr(a, "#include") && strstr(b, "#include"))
        return true;
    for (const char *at = a; (at = strstr(at, "kn_")); at++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)kn_identifier_length(at), at);
        if (strstr(b, name))
            return true;
    }
    return false;
}

static bool suits(const fused *k, const kn_part *part)
{
    for (int i = 0; i < k->count; i++) {
        const kn_part *other = k->members[i];
        if (disagree(other->p.code->functions, part->p.code->functions) ||
            (other->style != part->style && other->style != KN_STYLE_ANY && part->style != KN_STYLE_ANY))
            return false;
    }
    return k->count < KN_FUSION_MEMBERS;
}

static bool gather(fused *k, const kn_fusion *f)
{
    memset(k, 0, sizeof *k);
    for (int n = 0; n <= f->count; n++) {
        kn_part *part = n < f->count ? f->parts[n] : f->fresh;
        if (!part || !part->member)
            continue;
        if (!suits(k, part))
            return false;
        const int member = k->count++;
        k->members[member] = part;
        if (member == 0) {
            k->p.compute = part->p.compute;
            k->p.ndim = part->p.ndim;
            memcpy(k->p.shape, part->p.shape, sizeof k->p.shape);
        }
        k->vectors |= part->style == KN_STYLE_VECTORS;
        for (int i = 0; i < part->p.num_inputs; i++)
            if (part->p.inputs[i].dtype && !part->from[i].part && !add_input(k, member, i))
                return false;
        if (!add_outputs(k, part) || !add_numbers(k, member))
            return false;
    }
    return k->p.num_inputs + k->p.num_outputs <= KN_FUSION_OPERANDS && k->p.num_outputs > 0 &&
           count_lanes(k) <= KN_LAYOUT_LANES;
}

bool kn_fusion_fits(kn_fusion *f)
{
    fused k;
    return gather(&k, f);
}

/* --- the code ----------------------------------------------------------------------------------------------------- */

static int index_of(const fused *k, const kn_part *part)
{
    int i = 0;
    while (k->members[i] != part)
        i++;
    return i;
}

static bool is_computed_as(const fused *k, kn_dtype dtype)
{
    return dtype == k->p.compute || kn_dtype_is_reduced(dtype);
}

/* An input's letter in its part, with the value of the kernel's input or of the part that makes it. */
static void write_input(kn_text *out, const fused *k, int member, int i)
{
    const kn_part *part = k->members[member];
    const kn_operand *operand = &part->p.inputs[i];
    const kn_part_link from = part->from[i];
    const bool raw = is_raw(part->p.code, i);
    const char *type = raw ? kn_dtype_cl(kn_compute_type(operand->dtype)) : "T";
    kn_text_format(out, "const %s %c = ", type, part->p.code->inputs[i]);
    if (!from.part)
        kn_text_format(out, KN_POINTWISE_USER_PREFIX "%c; ", input_letters[k->input[member][i]]);
    else if (k->vectors)
        kn_text_format(out, "kn_f%d_%d; ", index_of(k, from.part), from.output);
    else
        kn_text_format(out, "(%s)KN_ROUND_%s(kn_f%d_%d); ", type, kn_dtype_kind(operand->rounded),
                       index_of(k, from.part), from.output);
}

/* A value as it would be in memory. */
static void write_value(kn_text *out, const fused *k, int member, int i)
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
        kn_text_format(out, "(%s)convert_long_sat(%s); ", kn_dtype_cl(dtype), value);
    else
        kn_text_format(out, "(%s)(%s); ", kn_dtype_cl(dtype), value);
}

static bool is_used(const fused *k, const kn_part *part, int output)
{
    bool used = part->stores[output];
    for (int m = 0; m < k->count; m++)
        for (int i = 0; i < k->members[m]->p.num_inputs; i++)
            used |= k->members[m]->from[i].part == part && k->members[m]->from[i].output == output;
    return used;
}

static void write_member(kn_text *out, const fused *k, int member)
{
    const kn_part *part = k->members[member];
    const kn_pointwise_code *code = part->p.code;
    for (int i = 0; i < part->p.num_outputs; i++)
        if (part->p.outputs[i].dtype && is_used(k, part, i))
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
        if (part->p.outputs[i].dtype && is_used(k, part, i))
            write_value(out, k, member, i);
    kn_text_append(out, "} ");
}

/* Compilers may make one operation of a product and a sum, also when they were different operators'. KN_KEEP lets no
 * value through unrounded: it changes its bits by a number that is 0, which the compiler does not know. */
static void write_functions(kn_text *out, const fused *k, const kn_limits *limits)
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
static void write_names(const fused *k, kn_text *operation, char *name, size_t size)
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

static void write_texts(fused_code *c, const fused *k, const kn_limits *limits)
{
    kn_text functions = {0}, statements = {0}, operation = {0}, key = {0};
    write_names(k, &operation, c->name, sizeof c->name);
    write_functions(&functions, k, limits);
    for (int m = 0; m < k->count; m++)
        write_member(&statements, k, m);
    for (int i = 0; i < k->p.num_outputs; i++)
        snprintf(c->values[i], sizeof c->values[i], "kn_f%d_%d", index_of(k, k->outputs[i].part), k->outputs[i].output);
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

static void fill_code(fused_code *c, const fused *k)
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

/* The same chain again finds its code. */
static kn_status get_code(fused *k, const kn_limits *limits)
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

/* --- running ------------------------------------------------------------------------------------------------------ */

/* A place for a value that has none of its own any more, and strides for it. */
static kn_status make_room(kn_stream *stream, kn_buffer **room, kn_operand *operand, const kn_pointwise_problem *p)
{
    int64_t count = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        operand->strides[d] = count;
        count *= p->shape[d];
    }
    KN_TRY(kn_buffer_alloc(room, stream, (size_t)count * kn_dtype_size(operand->dtype)));
    operand->buffer = *room;
    operand->offset = 0;
    return KN_OK;
}

/* In the order of the calls, as without fusion. */
static kn_status run_singly(kn_stream *stream, const fused *k)
{
    kn_buffer *rooms[KN_FUSION_MEMBERS][KN_POINTWISE_OUTPUTS] = {{NULL}};
    kn_operand places[KN_FUSION_MEMBERS][KN_POINTWISE_OUTPUTS];
    kn_status status = KN_OK;
    for (int m = 0; m < k->count && status == KN_OK; m++) {
        const kn_part *part = k->members[m];
        kn_pointwise_problem p = part->p;
        for (int i = 0; i < p.num_inputs; i++)
            if (p.inputs[i].dtype && part->from[i].part) {
                const kn_dtype rounded = p.inputs[i].rounded;
                p.inputs[i] = places[index_of(k, part->from[i].part)][part->from[i].output];
                p.inputs[i].rounded = rounded;
            }
        for (int i = 0; i < p.num_outputs && status == KN_OK; i++)
            if (p.outputs[i].dtype) {
                if (!is_used(k, part, i))
                    p.outputs[i].dtype = KN_DTYPE_DEFAULT;
                else if (!part->stores[i])
                    status = make_room(stream, &rooms[m][i], &p.outputs[i], &p);
                places[m][i] = p.outputs[i];
            }
        if (status == KN_OK)
            status = kn_pointwise_enqueue(stream, &p);
    }
    for (int m = 0; m < k->count; m++)
        for (int i = 0; i < KN_POINTWISE_OUTPUTS; i++)
            kn_buffer_free(rooms[m][i]);
    return status;
}

kn_status kn_fusion_run(kn_fusion *f)
{
    fused k;
    if (!gather(&k, f))
        return kn_fail(KN_ERR_INTERNAL, "fused operations exceed the limits of a kernel");
    kn_device *device = kn_stream_device(f->stream);
    if (k.count == 1)
        return run_singly(f->stream, &k);
    KN_TRY(get_code(&k, kn_device_limits(device)));
    return kn_pointwise_builds(device, &k.p) ? kn_pointwise_enqueue(f->stream, &k.p) : run_singly(f->stream, &k);
}
