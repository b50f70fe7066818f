/* loops/fusion_kernel.c - one pointwise problem from several: gathers their operands and runs it, or runs them one by
 * one. */
#include "loops/fusion_kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

int kn_fused_index_of(const kn_fused *k, const kn_part *part)
{
    int i = 0;
    while (k->members[i] != part)
        i++;
    return i;
}

bool kn_fused_is_used(const kn_fused *k, const kn_part *part, int output)
{
    bool used = part->stores[output];
    for (int m = 0; m < k->count; m++)
        for (int i = 0; i < k->members[m]->p.num_inputs; i++)
            used |= k->members[m]->from[i].part == part && k->members[m]->from[i].output == output;
    return used;
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

/* The input of the kernel for input i of a part, added if missing. False: there are too many. */
static bool add_input(kn_fused *k, int member, int i)
{
    const kn_pointwise_problem *p = &k->members[member]->p;
    const kn_operand *operand = &p->inputs[i];
    const bool raw = kn_part_reads_raw(k->members[member], i);
    int n = 0;
    while (n < k->p.num_inputs && !(kn_operand_is_same(&k->p.inputs[n], operand, p->ndim, p->shape) &&
                                    k->p.inputs[n].rounded == operand->rounded && k->raw[n] == raw))
        n++;
    if (n == KN_POINTWISE_INPUTS)
        return false;
    if (n == k->p.num_inputs) {
        k->p.inputs[k->p.num_inputs++] = *operand;
        k->raw[n] = raw;
    }
    k->input[member][i] = (uint8_t)n;
    return true;
}

static bool add_outputs(kn_fused *k, kn_part *part)
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
static bool add_numbers(kn_fused *k, int member)
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

static int count_lanes(const kn_fused *k)
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

static bool suits(const kn_fused *k, const kn_part *part)
{
    for (int i = 0; i < k->count; i++) {
        const kn_part *other = k->members[i];
        if (disagree(other->p.code->functions, part->p.code->functions) ||
            (other->style != part->style && other->style != KN_STYLE_ANY && part->style != KN_STYLE_ANY))
            return false;
    }
    return k->count < KN_FUSION_MEMBERS;
}

static bool gather(kn_fused *k, const kn_fusion *f)
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
    kn_fused k;
    return gather(&k, f);
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
static kn_status run_singly(kn_stream *stream, const kn_fused *k)
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
                p.inputs[i] = places[kn_fused_index_of(k, part->from[i].part)][part->from[i].output];
                p.inputs[i].rounded = rounded;
            }
        for (int i = 0; i < p.num_outputs && status == KN_OK; i++)
            if (p.outputs[i].dtype) {
                if (!kn_fused_is_used(k, part, i))
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
    kn_fused k;
    if (!gather(&k, f))
        return kn_fail(KN_ERR_INTERNAL, "fused operations exceed the limits of a kernel");
    kn_device *device = kn_stream_device(f->stream);
    if (k.count == 1)
        return run_singly(f->stream, &k);
    KN_TRY(kn_fused_find_code(&k, kn_device_limits(device)));
    return kn_pointwise_builds(device, &k.p) ? kn_pointwise_enqueue(f->stream, &k.p) : run_singly(f->stream, &k);
}
