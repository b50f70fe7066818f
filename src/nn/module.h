/* nn/module.h - the module as the nn layer sees it. See koine/module.h for what modules are. */
#ifndef KN_NN_MODULE_H
#define KN_NN_MODULE_H

#include <koine/nn.h>

#include "base/text.h"
#include "nn/tensor_list.h"

/* A parameter or buffer registered in a module. */
typedef struct kn_module_tensor {
    char *name;
    kn_tensor *tensor; /* one reference is the module's */
    bool is_buffer;
} kn_module_tensor;

typedef struct kn_module_child_entry {
    char *name;
    kn_module *module; /* owned */
} kn_module_child_entry;

/* A list as it was when the module tree had a certain revision. */
typedef struct kn_cached_list {
    kn_tensor_list list;
    uint64_t revision; /* of the tree, plus one; 0: never made */
} kn_cached_list;

typedef struct kn_graphed kn_graphed; /* nn/graphed.c */

/* A forward function that applies an activation to its result in the same pass. */
typedef kn_tensor *(*kn_activated_function)(kn_module *module, kn_tensor *x, kn_activation activation);

/* How many tensors a module takes and gives; `optional` of the inputs, the last ones, may be NULL or left out. */
typedef struct kn_signature {
    int inputs, optional, outputs;
} kn_signature;

/* What is common to a module and its replicas, beside its mode: what it does. */
typedef struct kn_module_kind {
    kn_forward_function forward;           /* one tensor to one; NULL: forward_many is set */
    kn_forward_many_function forward_many; /* any number of tensors; the arrays are as long as the signature says */
    kn_activated_function activated;       /* NULL: this module has no such function */
    kn_signature signature;                /* not used where signature_of is set: */
    kn_signature (*signature_of)(const kn_module *module); /* of modules that apply others, as those have it */
    void (*describe)(kn_module *module,
                     kn_text *text); /* what print(net) shows between the parentheses; NULL: nothing */
    kn_activation activation;        /* what the module itself does: of ReLU and ReLU6; else none */
    bool keeps_order;                /* activation(module(x)) is module(activation(x)): maxima */
    bool is_layer;                   /* the library's own: its forward keeps no tensor but what it registered */
} kn_module_kind;

struct kn_module {
    char *type_name;
    kn_module_kind kind;
    void *self;
    size_t self_size;
    void (*destroy)(void *self);
    bool training;
    bool owned; /* registered in another module, which frees it */

    /* Of a module that only runs another one on several devices (dist/data_parallel.c): */
    kn_module *wrapped; /* that one, its child; NULL: this is no such module */
    kn_device *const *devices;
    int num_devices;

    kn_graphed *graphed; /* kn_make_graphed_callable; NULL: it was not called */

    kn_module_tensor *tensors;
    int num_tensors, tensor_capacity;
    kn_module_child_entry *children;
    int num_children, child_capacity;

    uint64_t revision; /* counts registrations in this very module */
    kn_cached_list parameters, buffers;
};

/* What kn_module_each visits: every registration below `module`, depth first, own tensors before the children's, with
 * dotted names. A tensor registered under two names is visited twice. */
typedef kn_status (*kn_module_visitor)(const char *name, kn_tensor *tensor, bool is_buffer, void *user);
kn_status kn_module_each(kn_module *module, kn_module_visitor visit, void *user);

/* The sum of the revisions in the tree: as modules are never removed it changes whenever anything below does. */
uint64_t kn_module_tree_revision(const kn_module *module);

/* kn_module_parameters, telling a list that could not be made from one that is empty. */
kn_status kn_module_find_parameters(kn_parameter_list *found, kn_module *module);

/* The activation as an operation of its own. */
kn_tensor *kn_activate(kn_tensor *x, kn_activation activation);

/* The module applied, as kn_forward_many, and `activation` to its result where that is not KN_ACTIVATION_NONE. */
kn_status kn_forward_list(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                          int num_outputs, kn_activation activation);

/* The forward function of the module's kind, called with arrays as long as its signature says. */
kn_status kn_module_call(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

static inline kn_signature kn_module_signature(const kn_module *module)
{
    return module->kind.signature_of != NULL ? module->kind.signature_of(module) : module->kind.signature;
}

/* Watches the modules that this thread applies: called before one runs, with NULL, and with its outputs unless it
 * failed. Meanwhile each module runs by itself: nothing is fused or replayed. Returns who watched before. */
typedef struct kn_forward_observer {
    void (*applied)(const kn_module *module, kn_tensor *const *outputs, int num_outputs, void *user); /* NULL: nobody */
    void *user;
} kn_forward_observer;
kn_forward_observer kn_forward_observe(kn_forward_observer observer);
bool kn_forward_fuses(void); /* may a module apply the activation that follows it? */

/* The module whose state is saved: what a wrapper wraps, any other module itself. */
static inline kn_module *kn_module_unwrapped(kn_module *module)
{
    return module != NULL && module->wrapped != NULL ? module->wrapped : module;
}

/* Takes the last child away from the module, which must not be below another; the caller owns it then. */
kn_module *kn_module_release_child(kn_module *module);

/* For the constructors of layers: a module whose self is a copy of `params`. The first is for any kind; the others for
 * one tensor in and one out. */
kn_module *kn_layer_new_kind(const char *type_name, const kn_module_kind *kind, const void *params, size_t size);
kn_module *kn_layer_new(const char *type_name, kn_forward_function forward,
                        void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size);

/* For those whose layers can apply an activation: `forward` is then `activated` without one. */
kn_module *kn_layer_new_activated(const char *type_name, kn_activated_function activated,
                                  void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size);

/* For constructors: frees `module` and returns NULL with the thread's error sticking. */
kn_module *kn_layer_failed(kn_module *module);

#endif
