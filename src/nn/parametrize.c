/* nn/parametrize.c - registers, applies and removes parametrizations of a module's tensors. */
#include "nn/parametrize.h"

#include <koine/autograd.h>
#include <koine/shape.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/computed.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

enum { MOST_ORIGINALS = 8 };
static const char container_name[] = "parametrizations", prefix[] = "Parametrized";

/* --- a tensor's list ---------------------------------------------------------------------------------------------- */

/* "original", or "original0", ... */
static const char *original_name(char name[16], int i, int count)
{
    snprintf(name, 16, count == 1 ? "original" : "original%d", i);
    return name;
}

static int count_originals(const kn_module *list) { return kn_module_signature(list->children[0].module).inputs; }

/* The list's modules after its originals: the first takes these, each other the result of the one before. */
static kn_status apply_list(kn_module *list, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *originals[MOST_ORIGINALS], *value = NULL;
    char name[16];
    const int count = count_originals(list);
    (void)inputs;
    for (int i = 0; i < count; i++)
        originals[i] = kn_module_find_tensor(list, original_name(name, i, count))->tensor;
    kn_status status = KN_OK;
    for (int i = 0; i < list->num_children && status == KN_OK; i++)
        status = kn_forward_list(list->children[i].module, i == 0 ? originals : &value, i == 0 ? count : 1, &value, 1,
                                 KN_ACTIVATION_NONE);
    outputs[0] = value;
    return status;
}

static kn_tensor *compute_list(kn_module *list)
{
    kn_tensor *value = NULL;
    return kn_forward_list(list, NULL, 0, &value, 1, KN_ACTIVATION_NONE) == KN_OK ? value : NULL;
}

/* NULL: the tensor has no parametrization. */
static kn_module *list_of(const kn_module *module, const char *name)
{
    const kn_module *lists = kn_module_find_child(module, container_name);
    return lists != NULL ? kn_module_find_child(lists, name) : NULL;
}

static kn_tensor *compute(kn_module *module, const char *name) { return compute_list(list_of(module, name)); }

/* The originals of `value`: what the inverses give, the last parametrization's first. */
static kn_status invert(kn_module *list, kn_tensor *value, kn_tensor **originals)
{
    KN_NO_GRAD;
    originals[0] = value;
    for (int i = list->num_children - 1; i >= 0; i--) {
        kn_module *parametrization = list->children[i].module;
        kn_tensor *before = originals[0];
        if (parametrization->kind.right_inverse == NULL)
            continue;
        originals[0] = NULL;
        KN_TRY(parametrization->kind.right_inverse(parametrization, before, originals));
        for (int o = 0; o < kn_module_signature(parametrization).inputs; o++)
            if (originals[o] == NULL)
                return kn_error_status() != KN_OK ? kn_error_status()
                                                  : kn_fail(KN_ERR_STATE, "%s: its right inverse left original %d NULL",
                                                            parametrization->type_name, o);
    }
    return KN_OK;
}

/* --- registering -------------------------------------------------------------------------------------------------- */

kn_tensor *kn_parametrize_target(const char *function, kn_module *module, const char *name)
{
    if (module == NULL || name == NULL) {
        kn_fail_argument_null(function, module == NULL ? "module" : "name");
        return kn_error_make_sticky();
    }
    const kn_module_tensor *entry = kn_module_find_tensor(module, name);
    if (entry != NULL)
        return entry->tensor;
    if (list_of(module, name) != NULL)
        return compute(module, name);
    return kn_fail_null(KN_ERR_ARGUMENT, "%s: this %s has no parameter or buffer \"%s\"", function, module->type_name,
                        name);
}

static kn_status check_signature(const char *function, const kn_module *parametrization, bool is_first)
{
    const kn_signature signature = kn_module_signature(parametrization);
    if (signature.outputs != 1 || signature.inputs > (is_first ? MOST_ORIGINALS : 1))
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: %s has %d inputs and %d outputs; a parametrization has one output, and as the tensor's "
                       "first up to %d inputs, later one",
                       function, parametrization->type_name, signature.inputs, signature.outputs, MOST_ORIGINALS);
    if (signature.inputs > 1 && parametrization->kind.right_inverse == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %s has %d inputs and therefore needs a right_inverse", function,
                       parametrization->type_name, signature.inputs);
    return KN_OK;
}

static kn_status check_value(const char *function, const kn_tensor *target, const kn_tensor *value)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (value == NULL)
        return kn_error_status();
    if (kn_same_shape(target, value) && target->dtype == value->dtype)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s: the parametrization gives %s for the tensor %s; .unsafe = true allows it",
                   function, kn_tensor_describe(b, sizeof b, value), kn_tensor_describe(a, sizeof a, target));
}

/* A single original that keeps its shape and dtype stays the tensor that was registered. */
static kn_status add_originals(kn_module *list, const kn_module_tensor *entry, kn_tensor *const *originals)
{
    const int count = count_originals(list);
    char name[16];
    for (int i = 0; i < count; i++) {
        kn_tensor *tensor = originals[i];
        if (tensor != entry->tensor && count == 1) {
            KN_NO_GRAD;
            if (!kn_same_shape(tensor, entry->tensor))
                return kn_fail(KN_ERR_SHAPE, "%s: its right inverse changes the tensor's shape",
                               list->children[0].module->type_name);
            KN_TRY(kn_copy_(entry->tensor, tensor));
            tensor = entry->tensor;
        } else if (tensor != entry->tensor) {
            tensor = kn_detach(tensor);
            KN_TRY(kn_status_of(tensor));
            if (kn_requires_grad(entry->tensor))
                KN_TRY(kn_set_requires_grad(tensor, true));
        }
        KN_TRY(kn_module_add_tensor(list, original_name(name, i, count), tensor, entry->is_buffer));
    }
    return KN_OK;
}

/* Registers *child, which becomes NULL: ownership passes on failure too. */
static kn_status give(kn_module *module, const char *name, kn_module **child)
{
    kn_module *given = *child;
    *child = NULL;
    return kn_status_of(kn_module_register_module(module, name, given));
}

/* A list with the first parametrization. */
static kn_status make_list(kn_module **made, const char *function, const kn_module_tensor *entry,
                           kn_module **parametrization, bool unsafe)
{
    static const kn_module_kind kind = {.forward_many = apply_list, .signature = {.outputs = 1}, .is_layer = true};
    kn_tensor *originals[MOST_ORIGINALS] = {NULL};
    kn_module *list = *made = kn_layer_new_kind("ParametrizationList", &kind, NULL, 0);
    KN_TRY(kn_status_of(list));
    list->training = (*parametrization)->training;
    KN_TRY(give(list, "0", parametrization));
    KN_TRY(invert(list, entry->tensor, originals));
    KN_TRY(add_originals(list, entry, originals));
    KN_NO_GRAD;
    return unsafe ? KN_OK : check_value(function, entry->tensor, compute_list(list));
}

/* The module's "parametrizations", made if there are none. */
static kn_status container_of(kn_module **container, kn_module *module)
{
    *container = kn_module_find_child(module, container_name);
    if (*container != NULL)
        return KN_OK;
    kn_text type = {0};
    kn_text_format(&type, "%s%s", prefix, module->type_name);
    char *type_name = kn_text_finish(&type);
    if (type_name == NULL)
        return KN_ERR_MEMORY;
    *container = kn_module_register_module(module, container_name, kn_nn_module_dict_of(NULL, NULL, 0));
    if (*container == NULL) {
        kn_free(type_name);
        return kn_error_status();
    }
    (*container)->training = module->training;
    kn_free(module->type_name);
    module->type_name = type_name;
    return KN_OK;
}

static void drop_container_if_empty(kn_module *module)
{
    const kn_module *container = kn_module_find_child(module, container_name);
    if (container == NULL || container->num_children > 0)
        return;
    kn_module_drop_child(module, container_name);
    memmove(module->type_name, module->type_name + sizeof prefix - 1, strlen(module->type_name) + 2 - sizeof prefix);
}

/* Puts the list in the place of the registered tensor. */
static kn_status put_list(kn_module *module, const char *name, kn_module **list)
{
    kn_module *container;
    KN_TRY(container_of(&container, module));
    kn_status status = kn_computed_add(module, name, kn_module_find_tensor(module, name)->tensor, compute);
    if (status == KN_OK) {
        status = give(container, name, list);
        if (status == KN_OK)
            kn_module_drop_tensor(module, name);
        else
            kn_computed_remove(module, name);
    }
    drop_container_if_empty(module);
    return status;
}

static kn_status register_first(const char *function, kn_module *module, const char *name, kn_module **parametrization,
                                bool unsafe)
{
    kn_module *list = NULL;
    kn_status status = make_list(&list, function, kn_module_find_tensor(module, name), parametrization, unsafe);
    if (status == KN_OK)
        status = put_list(module, name, &list);
    kn_module_free(list);
    return status;
}

static kn_status register_next(const char *function, kn_module *module, const char *name, kn_module **parametrization,
                               bool unsafe)
{
    char number[16];
    kn_module *list = list_of(module, name);
    if (!unsafe) {
        KN_NO_GRAD;
        kn_tensor *before = compute(module, name), *value = kn_forward(*parametrization, before);
        KN_TRY(check_value(function, before, value));
    }
    snprintf(number, sizeof number, "%d", list->num_children);
    return give(list, number, parametrization);
}

static kn_status register_checked(const char *function, kn_module *module, const char *name,
                                  kn_module **parametrization, bool unsafe)
{
    const bool is_first = module != NULL && name != NULL && kn_module_find_tensor(module, name) != NULL;
    if (!is_first && (module == NULL || name == NULL || list_of(module, name) == NULL))
        return kn_status_of(kn_parametrize_target(function, module, name));
    KN_TRY(check_signature(function, *parametrization, is_first));
    kn_module_train(*parametrization, module->training);
    return is_first ? register_first(function, module, name, parametrization, unsafe)
                    : register_next(function, module, name, parametrization, unsafe);
}

static kn_status register_owned(const char *function, kn_module *module, const char *name, kn_module *parametrization,
                                const kn_register_parametrization_params *params)
{
    if (parametrization == NULL)
        return kn_error_status() != KN_OK ? kn_error_status() : kn_fail_argument_null(function, "parametrization");
    if (parametrization->owners > 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the parametrization (%s) already belongs to another module", function,
                       parametrization->type_name);
    if (params->right_inverse != NULL)
        parametrization->kind.right_inverse = params->right_inverse;
    KN_SCOPE;
    const kn_status status = register_checked(function, module, name, &parametrization, params->unsafe);
    kn_module_free(parametrization); /* NULL once it has an owner */
    return status;
}

kn_register_parametrization_params kn_register_parametrization_params_init(void)
{
    return (kn_register_parametrization_params){KN_REGISTER_PARAMETRIZATION_DEFAULTS};
}

kn_status kn_parametrize_register_parametrization_with(kn_module *module, const char *name, kn_module *parametrization,
                                                       const kn_register_parametrization_params *params)
{
    params = params ? params : &(kn_register_parametrization_params){KN_REGISTER_PARAMETRIZATION_DEFAULTS};
    return register_owned("parametrize_register_parametrization", module, name, parametrization, params);
}

kn_status kn_parametrize_with(const char *function, kn_module *module, const char *name, kn_module *parametrization,
                              kn_right_inverse right_inverse)
{
    return register_owned(
        function, module, name, parametrization,
        &(kn_register_parametrization_params){.right_inverse = right_inverse, .unsafe = right_inverse != NULL});
}

/* --- afterwards --------------------------------------------------------------------------------------------------- */

bool kn_parametrize_is_parametrized(const kn_module *module, const char *name)
{
    if (module == NULL)
        return false;
    return name != NULL ? list_of(module, name) != NULL : kn_module_find_child(module, container_name) != NULL;
}

static kn_status find_list(kn_module **list, const char *function, kn_module *module, const char *name)
{
    if (module == NULL || name == NULL)
        return kn_fail_argument_null(function, module == NULL ? "module" : "name");
    *list = list_of(module, name);
    return *list != NULL ? KN_OK
                         : kn_fail(KN_ERR_ARGUMENT, "%s: this %s has no parametrization of \"%s\"", function,
                                   module->type_name, name);
}

kn_status kn_parametrize_assign(kn_module *module, const char *name, kn_tensor *value)
{
    kn_module *list;
    kn_tensor *originals[MOST_ORIGINALS] = {NULL};
    char original[16];
    KN_TRY(find_list(&list, "parametrize_assign", module, name));
    KN_TRY(kn_check_tensor("parametrize_assign", "value", value));
    KN_SCOPE;
    KN_NO_GRAD;
    KN_TRY(invert(list, value, originals));
    kn_status status = KN_OK;
    for (int i = 0; i < count_originals(list) && status == KN_OK; i++)
        status = kn_copy_(kn_module_find_tensor(list, original_name(original, i, count_originals(list)))->tensor,
                          originals[i]);
    return status;
}

/* What is registered again: a single original, with the computed value if that is wanted, or a new parameter. */
static kn_status baked(kn_tensor **tensor, kn_module *module, const char *name, kn_module *list,
                       bool leave_parametrized)
{
    KN_NO_GRAD;
    const kn_computed *computed = kn_computed_find(module, name);
    const bool is_single = count_originals(list) == 1;
    *tensor = computed->original;
    if (!leave_parametrized)
        return is_single ? KN_OK
                         : kn_fail(KN_ERR_ARGUMENT,
                                   "parametrize_remove_parametrizations: \"%s\" has %d originals, so "
                                   "leave_parametrized must be true",
                                   name, count_originals(list));
    kn_tensor *value = compute(module, name);
    KN_TRY(kn_status_of(value));
    if (is_single && kn_same_shape(value, *tensor) && value->dtype == (*tensor)->dtype)
        return kn_copy_(*tensor, value);
    *tensor = kn_clone(value);
    KN_TRY(kn_status_of(*tensor));
    char first[16];
    const kn_tensor *original = kn_module_find_tensor(list, original_name(first, 0, count_originals(list)))->tensor;
    return kn_requires_grad(original) ? kn_set_requires_grad(*tensor, true) : KN_OK;
}

kn_status kn_parametrize_remove_parametrizations(kn_module *module, const char *name, bool leave_parametrized)
{
    kn_module *list;
    kn_tensor *tensor;
    char first[16];
    KN_TRY(find_list(&list, "parametrize_remove_parametrizations", module, name));
    KN_SCOPE;
    KN_TRY(baked(&tensor, module, name, list, leave_parametrized));
    kn_tensor *original = kn_retain(kn_computed_find(module, name)->original);
    const bool is_buffer = kn_module_find_tensor(list, original_name(first, 0, count_originals(list)))->is_buffer;
    kn_computed_remove(module, name);
    const kn_status status = kn_module_add_tensor(module, name, tensor, is_buffer);
    if (status == KN_OK) {
        kn_module_repoint(module, original, tensor);
        kn_module_drop_child(kn_module_find_child(module, container_name), name);
        drop_container_if_empty(module);
    }
    kn_release(original);
    return status;
}

/* --- older names -------------------------------------------------------------------------------------------------- */

/* The ends of names below "parametrizations.NAME", and what torch.nn.utils's weight_norm and spectral_norm put behind
 * NAME instead. */
static const struct older_end {
    const char *end, *older;
} older_ends[] = {{".original0", "_g"}, {".original1", "_v"}, {".original", "_orig"}, {".0._u", "_u"}, {".0._v", "_v"}};

bool kn_parametrize_older_name(kn_text *older, const char *name)
{
    const char *list = NULL, *next = name;
    while ((next = strstr(next, container_name)) != NULL)
        list = next++;
    const char *own = list != NULL ? list + sizeof container_name : NULL, *end = own;
    while (end != NULL && *end != '\0' && *end != '.')
        end++;
    for (size_t i = 0; end != NULL && i < sizeof older_ends / sizeof older_ends[0]; i++)
        if (strcmp(end, older_ends[i].end) == 0) {
            kn_text_append_bytes(older, name, (size_t)(list - name));
            kn_text_append_bytes(older, own, (size_t)(end - own));
            kn_text_append(older, older_ends[i].older);
            return true;
        }
    return false;
}
