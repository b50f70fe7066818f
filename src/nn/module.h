/* nn/module.h - the module struct, internal to the nn layer. See koine/module.h for what modules are. */
#pragma once

#include <koine/nn.h>

#include "base/text.h"
#include "nn/tensor_list.h"

/* A parameter or buffer registered in a module. */
typedef struct kn_module_tensor {
    char *name;
    kn_tensor *tensor; /* the module holds one reference */
    bool is_buffer;
} kn_module_tensor;

typedef struct kn_module_child_entry {
    char *name;
    kn_module *module; /* one of its owners is this one */
} kn_module_child_entry;

/* A list made at a certain revision of the module tree. */
typedef struct kn_cached_list {
    kn_tensor_list list;
    uint64_t revision; /* revision of the tree plus one; 0: never made */
} kn_cached_list;

typedef struct kn_graphed kn_graphed; /* nn/graphed.c */

/* Hooks (nn/hooks.h), with a reference to each; initialise with {0}. */
typedef struct kn_module_hooks {
    struct kn_module_hook **items;
    int count, capacity;
} kn_module_hooks;

/* Tensors that are computed from others before each forward pass (nn/computed.h); initialise with {0}. */
typedef struct kn_computed_list {
    struct kn_computed *items;
    int count, capacity;
} kn_computed_list;

/* A forward function that applies an activation to its result in the same pass. */
typedef kn_tensor *(*kn_activated_function)(kn_module *module, kn_tensor *x, kn_activation activation);

/* Numbers of inputs and outputs; the last `optional` inputs may be NULL or omitted. */
typedef struct kn_signature {
    int inputs, optional, outputs;
} kn_signature;

/* The behaviour of a module, shared with its replicas. */
typedef struct kn_module_kind {
    kn_forward_function forward;           /* one tensor to one; NULL: forward_many is set */
    kn_forward_many_function forward_many; /* any number of tensors; the arrays are as long as the signature says */
    kn_activated_function activated;       /* may be NULL */
    kn_signature signature;                /* unused if signature_of is set */
    kn_signature (*signature_of)(const kn_module *module); /* for containers: derived from the children's */
    void (*describe)(kn_module *module, kn_text *text);    /* appends the arguments of its repr; may be NULL */
    kn_activation activation;                              /* the activation this module is (ReLU, ReLU6), or none */
    /* of a parametrization: the inputs that give `value` (koine/parametrize.h); NULL: the value itself */
    kn_status (*right_inverse)(kn_module *module, kn_tensor *value, kn_tensor **originals);
    bool keeps_order;   /* activation(module(x)) == module(activation(x)): max pooling */
    bool lists_tensors; /* a ParameterList: its tensors are shown */
    bool is_layer;      /* built in: its forward stores no tensors but the registered ones */
    bool is_container;  /* built in, without parts that it needs: they may be removed */
} kn_module_kind;

struct kn_module {
    char *type_name;
    kn_module_kind kind;
    void *self;
    size_t self_size;
    void (*destroy)(void *self);
    bool training;
    int owners;           /* registrations in other modules, the last of which frees it; 0: it belongs to the caller */
    bool is_checkpointed; /* runs without a record, again in the backward pass: nn/recompute.h */

    /* For a wrapper that runs another module on several devices (dist/data_parallel.c): */
    kn_module *wrapped; /* the wrapped module, its child; NULL: not a wrapper */
    kn_device *const *devices;
    int num_devices;

    kn_graphed *graphed; /* from kn_make_graphed_callable, or NULL */
    kn_module_hooks hooks;
    kn_computed_list computed;
    char *extra_repr; /* of kn_module_set_extra_repr, or NULL */

    kn_module *origin; /* of a replica: what it is a replica of; NULL: not one */
    bool repeats;      /* a replica for a second forward pass: computes what the first did, and updates nothing */

    kn_module_tensor *tensors;
    int num_tensors, tensor_capacity;
    kn_module_child_entry *children;
    int num_children, child_capacity;

    uint64_t revision; /* counts registrations in this module alone */
    kn_cached_list parameters, buffers;
};

/* What kn_module_each visits: every registration below `module`, depth first, own tensors before the children's, with
 * dotted names. A tensor registered under two names is visited twice. */
typedef kn_status (*kn_module_visitor)(const char *name, kn_tensor *tensor, bool is_buffer, void *user);
kn_status kn_module_each(kn_module *module, kn_module_visitor visit, void *user);

/* The sum of the revisions in the tree, which changes whenever the tree does. */
uint64_t kn_module_tree_revision(const kn_module *module);

/* kn_module_parameters with a status, which distinguishes failure from an empty list. */
kn_status kn_module_find_parameters(kn_parameter_list *found, kn_module *module);

/* The activation as a separate operation. */
kn_tensor *kn_activate(kn_tensor *x, kn_activation activation);

/* kn_forward_many, then `activation` on the result unless it is KN_ACTIVATION_NONE. */
kn_status kn_forward_list(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                          int num_outputs, kn_activation activation);

/* Calls the kind's forward function; the arrays have the signature's lengths. */
kn_status kn_module_call(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

static inline kn_signature kn_module_signature(const kn_module *module)
{
    return module->kind.signature_of != NULL ? module->kind.signature_of(module) : module->kind.signature;
}

/* Observes the modules that this thread applies: called before each runs, with NULL, and after success with the
 * outputs. While it is set nothing is fused or replayed. Returns the previous observer. */
typedef struct kn_forward_observer {
    void (*applied)(const kn_module *module, kn_tensor *const *outputs, int num_outputs, void *user); /* NULL: nobody */
    void *user;
} kn_forward_observer;
/* x through the children from `from` to `end` - 1, as through those of a Sequential. */
kn_tensor *kn_forward_children(kn_module *module, int from, int end, kn_tensor *x);

kn_forward_observer kn_forward_observe(kn_forward_observer observer);
bool kn_forward_fuses(void); /* may a module apply the following activation? */

/* The module whose state is saved: a wrapper's wrapped module, otherwise the module itself. */
static inline kn_module *kn_module_unwrapped(kn_module *module)
{
    return module != NULL && module->wrapped != NULL ? module->wrapped : module;
}

/* Ownership passes to a module that is made of others, also on failure: frees those from modules[from] on that have no
 * owner and do not stand before. NULLs are allowed. */
void kn_module_discard(kn_module *const *modules, int from, int count);

/* Removes the last child of a root module and returns it to the caller, who then owns it. */
kn_module *kn_module_release_child(kn_module *module);

/* For what changes a module after it was made (nn/parametrize.c, nn/prune.c). The registration of a name, or NULL;
 * valid until the next change. */
kn_module_tensor *kn_module_find_tensor(kn_module *module, const char *name);
/* Registers a tensor as the last one, without changing it. */
kn_status kn_module_add_tensor(kn_module *module, const char *name, kn_tensor *tensor, bool is_buffer);
void kn_module_drop_tensor(kn_module *module, const char *name);            /* a registered one */
kn_module *kn_module_find_child(const kn_module *module, const char *name); /* NULL, without an error */
void kn_module_drop_child(kn_module *module, const char *name);             /* frees it; it exists */
/* Makes self point to `to` wherever it points to `from`. */
void kn_module_repoint(kn_module *module, const void *from, void *to);

/* For layer constructors: a module whose self is a copy of `params`. The first is for any kind, the others for one
 * input and one output. */
kn_module *kn_layer_new_kind(const char *type_name, const kn_module_kind *kind, const void *params, size_t size);
kn_module *kn_layer_new(const char *type_name, kn_forward_function forward,
                        void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size);

/* For layers that can fuse an activation: `forward` calls `activated` with none. */
kn_module *kn_layer_new_activated(const char *type_name, kn_activated_function activated,
                                  void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size);

/* For constructors: frees `module`, makes the thread's error sticky and returns NULL. */
kn_module *kn_layer_failed(kn_module *module);
