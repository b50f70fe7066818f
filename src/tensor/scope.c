/* tensor/scope.c - the calling thread's scopes: the tensors to release when one ends. */
#include "tensor/scope.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

typedef struct scope {
    kn_tensor **tensors;
    int count, capacity;
    bool is_internal;
    int adopter_before;
} scope;

/* scopes[0 .. depth - 1] are open. Those above keep their arrays for reuse. */
typedef struct scope_stack {
    scope *scopes;
    int depth, made;
    int adopter; /* the scope that new tensors belong to; -1: none */
} scope_stack;

static _Thread_local scope_stack *stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

/* A thread that ends inside a scope leaves it, too. */
static void free_stack(void *block)
{
    scope_stack *dead = block;
    stack = dead;
    kn_scope_end(1);
    stack = NULL;
    for (int i = 0; i < dead->made; i++)
        kn_free(dead->scopes[i].tensors);
    kn_free(dead->scopes);
    kn_free(dead);
}

static void make_key(void) { pthread_key_create(&stack_key, free_stack); }

static scope_stack *thread_stack(void)
{
    if (!stack) {
        pthread_once(&stack_once, make_key);
        stack = kn_calloc(1, sizeof *stack);
        if (stack) {
            stack->adopter = -1;
            pthread_setspecific(stack_key, stack);
        }
    }
    return stack;
}

static kn_status make_room(scope_stack *scopes)
{
    int made = scopes->made;
    KN_TRY(KN_GROW(scopes->scopes, scopes->depth, scopes->made));
    for (; made < scopes->made; made++)
        scopes->scopes[made] = (scope){0};
    return KN_OK;
}

static int begin(bool is_internal)
{
    scope_stack *scopes = thread_stack();
    if (!scopes || make_room(scopes) != KN_OK)
        return 0;
    scope *opened = &scopes->scopes[scopes->depth];
    opened->is_internal = is_internal;
    opened->adopter_before = scopes->adopter;
    scopes->adopter = scopes->depth++;
    return scopes->depth;
}

int kn_scope_begin(void) { return begin(false); }
int kn_scope_begin_internal(void) { return begin(true); }

void kn_scope_end(int depth)
{
    while (stack && depth > 0 && stack->depth >= depth) {
        scope *top = &stack->scopes[stack->depth - 1];
        if (top->count > 0) {
            kn_tensor_scope_release(top->tensors[--top->count]);
            continue; /* a release may run arbitrary code, including other scopes */
        }
        stack->depth--;
        stack->adopter = top->adopter_before;
    }
}

int kn_scope_enter_user_code(void)
{
    if (!stack)
        return -1;
    int before = stack->adopter, program = stack->depth - 1;
    while (program > 0 && stack->scopes[program].is_internal)
        program--;
    stack->adopter = program;
    return before;
}

void kn_scope_leave_user_code(int adopter)
{
    if (stack)
        stack->adopter = adopter;
}

int kn_scope_suspend(void)
{
    if (!stack)
        return -1;
    int before = stack->adopter;
    stack->adopter = -1;
    return before;
}

void kn_scope_resume(int suspended) { kn_scope_leave_user_code(suspended); }

kn_tensor *kn_scope_return(int depth, kn_tensor *tensor)
{
    kn_retain(tensor);
    kn_scope_end(depth);
    return tensor ? kn_scope_adopt(tensor) : NULL;
}

static kn_status add(scope *owner, kn_tensor *tensor)
{
    KN_TRY(KN_GROW(owner->tensors, owner->count, owner->capacity));
    owner->tensors[owner->count++] = tensor;
    return KN_OK;
}

kn_tensor *kn_scope_adopt(kn_tensor *tensor)
{
    if (!tensor)
        return kn_error_make_sticky();
    if (!stack || stack->adopter < 0)
        return tensor;
    if (add(&stack->scopes[stack->adopter], tensor) == KN_OK)
        return tensor;
    kn_release(tensor);
    return kn_error_make_sticky();
}

kn_status kn_scope_adopt_all(kn_tensor **owned, int count, kn_tensor **out)
{
    kn_status status = KN_OK;
    for (int i = 0; i < count; i++) {
        if (!owned[i])
            continue;
        if (status != KN_OK)
            kn_release(owned[i]);
        else if (!(owned[i] = kn_scope_adopt(owned[i])))
            status = kn_error_status();
    }
    for (int i = 0; i < count && status == KN_OK; i++)
        out[i] = owned[i];
    return status;
}

kn_status kn_scope_return_all(int depth, kn_tensor **tensors, int count, kn_tensor **out)
{
    for (int i = 0; i < count; i++)
        kn_retain(tensors[i]);
    kn_scope_end(depth);
    return kn_scope_adopt_all(tensors, count, out);
}
