/* ops/user/jit.c - creating and calling a kn_jit. See koine/jit.h. */
#include "ops/user/jit.h"

#include <koine/shape.h>
#include <string.h>

#include "base/memory.h"
#include "ops/shape/broadcast.h"
#include "tensor/liveness.h"

/* --- making ------------------------------------------------------------------------------------------------------- */

static int count_scalars(const kn_jit_scalar *scalars)
{
    int count = 0;
    while (count < KN_JIT_MAX_SCALARS && scalars[count].name)
        count++;
    return count;
}

static kn_status take_scalars(kn_jit *jit, const kn_jit_scalar *scalars)
{
    jit->num_scalars = count_scalars(scalars);
    for (int i = 0; i < jit->num_scalars; i++) {
        jit->defaults[i] = scalars[i].value;
        jit->names[i] = kn_strdup(scalars[i].name);
        if (!jit->names[i])
            return KN_ERR_MEMORY;
    }
    return KN_OK;
}

/* Each scalar must be a parameter of the function exactly once. */
static kn_status check_scalars(const kn_jit *jit)
{
    const kn_jit_signature *s = &jit->forward.signature;
    for (int i = 0; i < jit->num_scalars; i++) {
        int found = 0;
        for (int p = 0; p < s->num_parameters; p++)
            found += s->parameters[p].kind == KN_JIT_NUMBER && s->parameters[p].index == i;
        if (found != 1)
            return kn_fail(KN_ERR_ARGUMENT,
                           "`%s` has %d parameters called `%s`, which .scalars names; it needs exactly one", s->name,
                           found, jit->names[i]);
    }
    return KN_OK;
}

static kn_status check_forward(kn_jit *jit)
{
    const kn_jit_signature *s = &jit->forward.signature;
    jit->num_inputs = s->num_values;
    jit->num_outputs = s->returns_value ? 1 : s->num_pointers;
    if (jit->num_inputs < 1)
        return kn_fail(KN_ERR_ARGUMENT, "`%s` takes 0 tensors; it must take one or more", s->name);
    return check_scalars(jit);
}

static kn_status check_derivative(const kn_jit *jit)
{
    const kn_jit_signature *s = &jit->derivative.signature;
    const int results = s->returns_value ? 1 : s->num_pointers;
    if (s->num_values == jit->num_inputs + jit->num_outputs && results == jit->num_inputs)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT,
                   "the derivative `%s` takes %d values of T and gives %d results; it must take the %d inputs of `%s` "
                   "and the gradients of its %d outputs, and give the gradients of the inputs",
                   s->name, s->num_values, results, jit->num_inputs, jit->forward.signature.name, jit->num_outputs);
}

static kn_status set_up_derivative(kn_jit *jit, const char *forward, char *derivative, const kn_jit_scalar *scalars)
{
    kn_jit_signature *s = &jit->derivative.signature;
    kn_status status = kn_jit_parse(s, derivative, scalars, jit->num_scalars);
    if (status != KN_OK) {
        kn_error_prefix("the derivative");
        return status;
    }
    s->suits_vectors = s->suits_vectors && jit->forward.signature.suits_vectors; /* it may call functions of the code */
    if (strcmp(s->name, jit->forward.signature.name) == 0)
        return kn_fail(KN_ERR_ARGUMENT, "the derivative is called `%s` like the function; it needs another name",
                       s->name);
    KN_TRY(check_derivative(jit));
    return kn_jit_function_init(&jit->derivative, kn_jit_is_packed(jit), forward, jit->forward.signature.name,
                                derivative);
}

static void set_up_op(kn_jit *jit, bool differentiable)
{
    const bool packed = kn_jit_is_packed(jit);
    jit->op = (kn_op){.name = jit->forward.name,
                      .inputs = {"*tensors"},
                      .record_size = sizeof(kn_jit_record),
                      .record_keep = kn_jit_record_keep,
                      .record_drop = kn_jit_record_drop,
                      .shape = packed ? kn_jit_packed_shape : kn_jit_shape,
                      .forward = packed ? kn_jit_packed_forward : kn_jit_forward,
                      .backward = !differentiable ? NULL
                                  : packed        ? kn_jit_packed_backward
                                                  : kn_jit_backward};
}

/* `code` and `derivative` (or NULL) are copies that the parser may write to. */
static kn_status set_up(kn_jit *jit, char *code, char *derivative, const kn_jit_params *options)
{
    KN_TRY(take_scalars(jit, options->scalars));
    KN_TRY(kn_jit_parse(&jit->forward.signature, code, options->scalars, jit->num_scalars));
    KN_TRY(check_forward(jit));
    KN_TRY(kn_jit_function_init(&jit->forward, kn_jit_is_packed(jit), NULL, NULL, code));
    if (derivative)
        KN_TRY(set_up_derivative(jit, code, derivative, options->scalars));
    set_up_op(jit, derivative != NULL);
    return KN_OK;
}

kn_jit_params kn_jit_params_init(void) { return (kn_jit_params){KN_JIT_DEFAULTS}; }

kn_jit *kn_jit_elementwise_with(const char *code, const kn_jit_params *options)
{
    options = options ? options : &(kn_jit_params){KN_JIT_DEFAULTS};
    if (!code) {
        kn_fail_argument_null("kn_jit_elementwise", "code");
        return kn_error_make_sticky();
    }
    kn_jit *jit = kn_calloc(1, sizeof *jit);
    char *copy = jit ? kn_strdup(code) : NULL;
    char *derivative = copy && options->derivative ? kn_strdup(options->derivative) : NULL;
    kn_status status = copy && (derivative || !options->derivative) ? KN_OK : KN_ERR_MEMORY;
    if (jit)
        atomic_init(&jit->references, 1);
    if (status == KN_OK)
        status = set_up(jit, copy, derivative, options);
    kn_free(copy);
    kn_free(derivative);
    if (status == KN_OK)
        return jit;
    kn_error_prefix("kn_jit_elementwise");
    kn_jit_free(jit);
    return kn_error_make_sticky();
}

void kn_jit_free(kn_jit *jit)
{
    if (!jit || atomic_fetch_sub(&jit->references, 1) != 1)
        return;
    for (int i = 0; i < KN_JIT_MAX_SCALARS; i++)
        kn_free(jit->names[i]);
    kn_jit_function_free(&jit->forward);
    kn_jit_function_free(&jit->derivative);
    kn_free(jit);
}

void kn_jit_record_keep(void *params) { atomic_fetch_add(&((kn_jit_record *)params)->jit->references, 1); }
void kn_jit_record_drop(void *params) { kn_jit_free(((kn_jit_record *)params)->jit); }

const char *kn_jit_name(const kn_jit *jit) { return jit ? jit->op.name : NULL; }
int kn_jit_num_inputs(const kn_jit *jit) { return jit ? jit->num_inputs : 0; }
int kn_jit_num_outputs(const kn_jit *jit) { return jit ? jit->num_outputs : 0; }

/* --- calling ------------------------------------------------------------------------------------------------------ */

static kn_status resolve_scalars(kn_jit_record *params, const kn_jit *jit, const kn_jit_scalar *given)
{
    const int count = count_scalars(given);
    memcpy(params->scalars, jit->defaults, sizeof params->scalars);
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < jit->num_scalars && strcmp(jit->names[at], given[i].name) != 0)
            at++;
        if (at == jit->num_scalars)
            return kn_fail(KN_ERR_ARGUMENT,
                           "%s: there is no number called `%s`; .scalars of kn_jit_elementwise lists the numbers",
                           jit->op.name, given[i].name);
        params->scalars[at] = given[i].value;
    }
    return KN_OK;
}

static kn_status check_inputs(const kn_jit *jit, kn_tensor *const *inputs, int num_inputs)
{
    if (num_inputs != jit->num_inputs)
        return kn_fail(KN_ERR_ARGUMENT, "%s takes %d tensor%s, not %d", jit->op.name, jit->num_inputs,
                       jit->num_inputs == 1 ? "" : "s", num_inputs);
    for (int i = 0; i < num_inputs; i++)
        KN_TRY(kn_check_tensor(jit->op.name, "tensor", inputs ? inputs[i] : NULL));
    return KN_OK;
}

/* The rows of a packed output, in the inputs' joint shape. */
static kn_tensor *unpack(kn_tensor *packed, kn_tensor *const *inputs, int num_inputs, kn_tensor **more, int count)
{
    int64_t shape[KN_MAX_DIMS];
    int ndim;
    if (!packed || kn_broadcast_all(&ndim, shape, inputs, num_inputs) != KN_OK)
        return NULL;
    for (int i = 1; i < count; i++)
        if (!(more[i - 1] = kn_reshape(kn_select(packed, 0, i), ndim, shape)))
            return NULL;
    return kn_reshape(kn_select(packed, 0, 0), ndim, shape);
}

kn_jit_call_params kn_jit_call_params_init(void) { return (kn_jit_call_params){KN_JIT_CALL_DEFAULTS}; }

kn_tensor *kn_jit_call_with(const kn_jit *jit, kn_tensor *const *inputs, int num_inputs,
                            const kn_jit_call_params *options)
{
    kn_tensor *more[KN_JIT_MAX_PARAMETERS];
    kn_jit_record params = {.jit = (kn_jit *)(uintptr_t)jit}; /* its reference count changes */
    options = options ? options : &(kn_jit_call_params){KN_JIT_CALL_DEFAULTS};
    if (!jit) {
        kn_fail_argument_null("kn_jit_call", "jit");
        return kn_error_make_sticky();
    }
    for (int i = 0; options->more && i < jit->num_outputs - 1; i++)
        options->more[i] = NULL; /* the value after a failure */
    if (check_inputs(jit, inputs, num_inputs) != KN_OK || resolve_scalars(&params, jit, options->scalars) != KN_OK)
        return kn_error_make_sticky();
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_make_sticky();
    kn_tensor *first = kn_op_apply(&jit->op, inputs, num_inputs, &params, kn_jit_is_packed(jit) ? NULL : more);
    if (kn_jit_is_packed(jit))
        first = unpack(first, inputs, num_inputs, more, options->more ? jit->num_outputs : 1);
    const int kept = first && options->more ? jit->num_outputs - 1 : 0;
    for (int i = 0; i < kept; i++)
        kn_retain(more[i]);
    first = kn_scope_return(depth, first);
    for (int i = 0; i < kept; i++)
        options->more[i] = kn_scope_adopt(more[i]);
    return first;
}
