/* tensor/scope.c - the calling thread's stack of scopes: which tensors to release when one ends. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

/* One stack of tensors per thread; a NULL entry marks where a scope begins. */
typedef struct scope_stack {
    kn_tensor **items;
    size_t count, capacity;
    int depth;
} scope_stack;

static _Thread_local scope_stack *stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static void free_stack(void *block)
{
    scope_stack *dead = block;
    kn_free(dead->items);
    kn_free(dead);
}

static void make_key(void) { pthread_key_create(&stack_key, free_stack); }

static scope_stack *thread_stack(void)
{
    if (!stack) {
        pthread_once(&stack_once, make_key);
        stack = kn_calloc(1, sizeof *stack);
        if (stack)
            pthread_setspecific(stack_key, stack);
    }
    return stack;
}

static kn_status push(scope_stack *scopes, kn_tensor *tensor)
{
    if (scopes->count == scopes->capacity) {
        size_t capacity = scopes->capacity ? 2 * scopes->capacity : 64;
        kn_tensor **items = kn_realloc(scopes->items, capacity * sizeof *items);
        if (!items)
            return KN_ERR_MEMORY;
        scopes->items = items;
        scopes->capacity = capacity;
    }
    scopes->items[scopes->count++] = tensor;
    return KN_OK;
}

int kn_scope_begin(void)
{
    scope_stack *scopes = thread_stack();
    if (!scopes || push(scopes, NULL) != KN_OK)
        return 0;
    return ++scopes->depth;
}

void kn_scope_end(int depth)
{
    while (stack && depth > 0 && stack->depth >= depth) {
        kn_tensor *tensor = stack->items[--stack->count];
        if (tensor)
            kn_release(tensor);
        else
            stack->depth--;
    }
}

kn_tensor *kn_scope_return(int depth, kn_tensor *tensor)
{
    kn_retain(tensor);
    kn_scope_end(depth);
    return tensor ? kn_scope_adopt(tensor) : NULL;
}

kn_tensor *kn_scope_adopt(kn_tensor *tensor)
{
    if (!tensor)
        return kn_stick();
    if (!stack || stack->depth == 0)
        return tensor;
    if (push(stack, tensor) == KN_OK)
        return tensor;
    kn_release(tensor);
    return kn_stick();
}
