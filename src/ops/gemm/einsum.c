/* ops/gemm/einsum.c - torch.einsum. Operands are multiplied from left to right: dimensions that the rest does not need
 * are summed over as soon as possible, in a batched matrix product. */
#include <ctype.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/matmul.h"

/* A dimension's name: 0 to 51 for A to Z and a to z, then those of the ellipsis, the last one first. */
enum { LETTERS = 52, NAMES = LETTERS + KN_MAX_DIMS };

/* A tensor and the names of its dimensions. */
typedef struct term {
    kn_tensor *tensor;
    int count, names[2 * KN_MAX_DIMS];
} term;

static int name_of(char letter) { return isupper((unsigned char)letter) ? letter - 'A' : letter - 'a' + 26; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int place_of(const term *t, int name)
{
    for (int d = 0; d < t->count; d++)
        if (t->names[d] == name)
            return d;
    return -1;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The names of one operand, or of the result, up to `end`; an ellipsis stands for `hidden` dimensions. */
static kn_status read_names(term *t, const char *from, const char *end, int hidden)
{
    bool has_ellipsis = false;
    t->count = 0;
    for (; from < end; from++) {
        if (*from == ' ')
            continue;
        if (strncmp(from, "...", 3) == 0 && !has_ellipsis) {
            for (int i = hidden; i > 0 && t->count < KN_MAX_DIMS; i--)
                t->names[t->count++] = LETTERS + i - 1;
            has_ellipsis = true;
            from += 2;
        } else if (is_letter(*from) && t->count < KN_MAX_DIMS) {
            t->names[t->count++] = name_of(*from);
        } else {
            return kn_fail(KN_ERR_ARGUMENT,
                           "'%c' at this place of the equation: it has letters, one \"...\" for each operand, commas "
                           "and \"->\", and at most %d dimensions for each",
                           *from, KN_MAX_DIMS);
        }
    }
    return KN_OK;
}

/* How many dimensions the operand's ellipsis stands for. */
static int hidden_dims(const char *from, const char *end, const kn_tensor *t)
{
    int letters = 0;
    bool has_ellipsis = false;
    for (; from < end; from++) {
        letters += is_letter(*from);
        has_ellipsis |= *from == '.';
    }
    return has_ellipsis && t->ndim > letters ? t->ndim - letters : 0;
}

/* Without "->": the ellipsis, then the letters that occur once. */
static void imply_result(term *result, const int *occurrences)
{
    result->count = 0;
    for (int i = NAMES - 1; i >= LETTERS; i--)
        if (occurrences[i] > 0 && result->count < KN_MAX_DIMS)
            result->names[result->count++] = i;
    for (int i = 0; i < LETTERS; i++)
        if (occurrences[i] == 1 && result->count < 2 * KN_MAX_DIMS)
            result->names[result->count++] = i;
}

static kn_status check_result(const term *result, const int *occurrences)
{
    if (result->count > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the result would have %d dimensions; at most %d are supported", result->count,
                       KN_MAX_DIMS);
    for (int d = 0; d < result->count; d++) {
        const int name = result->names[d], letter = name < 26 ? 'A' + name : 'a' + name - 26;
        if (occurrences[name] == 0)
            return kn_fail(KN_ERR_ARGUMENT, "'%c' is in the result but in no operand", letter);
        if (place_of(result, name) != d)
            return kn_fail(KN_ERR_ARGUMENT, "'%c' is in the result twice", letter);
    }
    return KN_OK;
}

/* Names, and their sizes: the same everywhere, or 1. */
static kn_status read_operand(term *t, const char *from, const char *end, kn_tensor *operand, int index, int64_t *sizes)
{
    t->tensor = operand;
    KN_TRY(read_names(t, from, end, hidden_dims(from, end, operand)));
    if (t->count != operand->ndim)
        return kn_fail(KN_ERR_SHAPE, "operand %d has %d dimensions, but the equation names %d", index, operand->ndim,
                       t->count);
    for (int d = 0; d < t->count; d++) {
        int64_t *size = &sizes[t->names[d]];
        if (*size != 1 && operand->shape[d] != 1 && *size != operand->shape[d])
            return kn_fail(KN_ERR_SHAPE, "dimension %d of operand %d has size %lld, elsewhere %lld", d, index,
                           (long long)operand->shape[d], (long long)*size);
        *size = operand->shape[d] == 1 ? *size : operand->shape[d];
    }
    return KN_OK;
}

static kn_status read_equation(const char *equation, term *terms, kn_tensor *const *operands, int count, term *result,
                               int *occurrences)
{
    const char *arrow = strstr(equation, "->"), *end = arrow ? arrow : equation + strlen(equation);
    int64_t sizes[NAMES];
    int hidden = 0;
    for (int i = 0; i < NAMES; i++)
        sizes[i] = 1;
    for (int i = 0; i < count; i++) {
        const char *comma = memchr(equation, ',', (size_t)(end - equation)), *after = comma ? comma : end;
        if ((comma != NULL) != (i < count - 1))
            return kn_fail(KN_ERR_ARGUMENT, "there are %d operands, but the equation has %s", count,
                           comma ? "more" : "fewer");
        KN_TRY(read_operand(&terms[i], equation, after, operands[i], i, sizes));
        const int own = hidden_dims(equation, after, operands[i]);
        hidden = own > hidden ? own : hidden;
        for (int d = 0; d < terms[i].count; d++)
            occurrences[terms[i].names[d]]++;
        equation = after + 1;
    }
    if (arrow)
        KN_TRY(read_names(result, arrow + 2, arrow + strlen(arrow), hidden));
    else
        imply_result(result, occurrences);
    return check_result(result, occurrences);
}

/* --- one operand -------------------------------------------------------------------------------------------------- */

static kn_status failed(const term *t) { return t->tensor ? KN_OK : kn_error_status(); }

static void remove_name(term *t, int d)
{
    t->count--;
    memmove(t->names + d, t->names + d + 1, (size_t)(t->count - d) * sizeof t->names[0]);
}

/* A name that occurs twice: both dimensions become their diagonal. */
static kn_status take_diagonal(term *t, int first, int second)
{
    kn_tensor *x = t->tensor;
    const int64_t n = x->shape[first];
    int order[KN_MAX_DIMS], count = 0;
    if (x->shape[second] != n)
        return kn_fail(KN_ERR_SHAPE, "a letter names two dimensions of one operand, of sizes %lld and %lld",
                       (long long)n, (long long)x->shape[second]);
    for (int d = 0; d < x->ndim; d++)
        if (d != first && d != second)
            order[count++] = d;
    order[count] = first;
    order[count + 1] = second;
    kn_tensor *places =
        kn_arange_with(0, (double)(n * n), (double)(n + 1), &(kn_tensor_options){KN_I64, .device = x->storage->device});
    x = kn_index_select(kn_flatten(kn_permute(x, order), -2, -1), -1, places);
    const int name = t->names[first];
    remove_name(t, second);
    remove_name(t, first);
    t->names[t->count++] = name;
    t->tensor = x;
    return failed(t);
}

static kn_status take_diagonals(term *t)
{
    for (int d = 0; d < t->count; d++)
        for (int e = d + 1; e < t->count; e++)
            if (t->names[e] == t->names[d]) {
                KN_TRY(take_diagonal(t, d, e));
                d = -1;
                break;
            }
    return KN_OK;
}

/* Sums over the dimensions whose names are not needed. */
static kn_status sum_unneeded(term *t, const bool *needed)
{
    int dims[KN_MAX_DIMS], count = 0;
    for (int d = 0; d < t->count; d++)
        if (!needed[t->names[d]])
            dims[count++] = d;
    if (count == 0)
        return KN_OK;
    t->tensor = kn_sum_dims(t->tensor, dims, count, false);
    for (int i = count - 1; i >= 0; i--)
        remove_name(t, dims[i]);
    return failed(t);
}

/* A dimension of size 1 that is larger in the other broadcasts: without it the other's is used. */
static kn_status drop_ones(term *t, const term *other)
{
    for (int d = t->count - 1; d >= 0 && t->tensor; d--)
        if (t->tensor->shape[d] == 1 && place_of(other, t->names[d]) >= 0) {
            t->tensor = kn_squeeze(t->tensor, d);
            remove_name(t, d);
        }
    return failed(t);
}

/* --- two operands ------------------------------------------------------------------------------------------------- */

/* A list of names and their sizes. */
typedef struct name_list {
    int count, names[NAMES];
    int64_t sizes[NAMES], total;
} name_list;

static void append(name_list *list, const term *t, int d)
{
    list->names[list->count] = t->names[d];
    list->sizes[list->count++] = t->tensor->shape[d];
    list->total *= t->tensor->shape[d];
}

/* The tensor with its dimensions in the order of the lists, each list joined to one. */
static kn_tensor *arrange(const term *t, const name_list *const lists[3])
{
    int order[KN_MAX_DIMS], count = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < lists[i]->count; k++)
            order[count++] = place_of(t, lists[i]->names[k]);
    return kn_reshape(kn_permute(t->tensor, order), 3,
                      (const int64_t[]){lists[0]->total, lists[1]->total, lists[2]->total});
}

/* left becomes its product with right, summed over the names that only they have. */
static kn_status multiply(term *left, term *right, const bool *needed)
{
    name_list both = {.total = 1}, inside = both, of_left = both, of_right = both;
    for (int d = 0; d < left->count; d++) {
        const bool shared = place_of(right, left->names[d]) >= 0;
        append(!shared ? &of_left : needed[left->names[d]] ? &both : &inside, left, d);
    }
    for (int d = 0; d < right->count; d++)
        if (place_of(left, right->names[d]) < 0)
            append(&of_right, right, d);
    if (both.count + of_left.count + of_right.count > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "a product of two operands would have more than %d dimensions", KN_MAX_DIMS);
    kn_tensor *a = arrange(left, (const name_list *const[]){&both, &of_left, &inside});
    kn_tensor *b = arrange(right, (const name_list *const[]){&both, &inside, &of_right});
    kn_tensor *product = inside.count == 0 ? kn_mul(a, b) : kn_matmul(a, b);
    int64_t shape[KN_MAX_DIMS];
    const name_list *const lists[] = {&both, &of_left, &of_right};
    left->count = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < lists[i]->count; k++) {
            shape[left->count] = lists[i]->sizes[k];
            left->names[left->count++] = lists[i]->names[k];
        }
    left->tensor = kn_reshape(product, left->count, shape);
    return failed(left);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static kn_status in_order(kn_tensor **y, const term *t, const term *result, kn_tensor *const *operands)
{
    int order[KN_MAX_DIMS];
    for (int d = 0; d < result->count; d++)
        order[d] = place_of(t, result->names[d]);
    *y = kn_permute(t->tensor, order);
    if (*y == operands[0])
        *y = kn_clone(*y);
    return *y ? KN_OK : kn_error_status();
}

enum { MOST_OPERANDS = 32 };

static kn_status einsum(kn_tensor **y, const char *equation, kn_tensor *const *operands, int count)
{
    term terms[MOST_OPERANDS], result;
    int occurrences[NAMES] = {0}, later[NAMES] = {0};
    if (!equation || count < 1 || count > MOST_OPERANDS)
        return kn_fail(KN_ERR_ARGUMENT, "%d operands; it takes an equation and 1 to %d", count, MOST_OPERANDS);
    KN_TRY(read_equation(equation, terms, operands, count, &result, occurrences));
    for (int i = 0; i < count; i++) {
        KN_TRY(take_diagonals(&terms[i]));
        for (int d = 0; d < terms[i].count; d++)
            later[terms[i].names[d]]++;
    }
    term *product = &terms[0];
    for (int d = 0; d < product->count; d++)
        later[product->names[d]]--;
    for (int i = 0; i < count; i++) {
        bool needed[NAMES], beside[NAMES];
        if (i > 0)
            for (int d = 0; d < terms[i].count; d++)
                later[terms[i].names[d]]--;
        for (int name = 0; name < NAMES; name++)
            needed[name] = later[name] > 0 || place_of(&result, name) >= 0;
        if (i == 0) {
            KN_TRY(sum_unneeded(product, needed));
            continue;
        }
        for (int name = 0; name < NAMES; name++)
            beside[name] = needed[name] || place_of(product, name) >= 0;
        KN_TRY(sum_unneeded(&terms[i], beside));
        KN_TRY(drop_ones(product, &terms[i]));
        KN_TRY(drop_ones(&terms[i], product));
        KN_TRY(multiply(product, &terms[i], needed));
        KN_TRY(sum_unneeded(product, needed));
    }
    return in_order(y, product, &result, operands);
}

kn_tensor *kn_einsum(const char *equation, kn_tensor *const *operands, int count)
{
    kn_composition c = kn_composition_begin("einsum", operands, count);
    if (c.status == KN_OK)
        c.status = einsum(&c.result, equation, operands, count);
    return kn_composition_end(&c);
}
