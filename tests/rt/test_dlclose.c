/* The library taken out of the process while threads still have scopes of it open: what ends them is still there. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <koine/tensor.h>

static void *library;
static sem_t opened, closed;
static bool made;

/* dlsym's result is not a function pointer in C, but has its bits. */
static bool find(const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    if (!symbol)
        fprintf(stderr, "%s\n", dlerror());
    return symbol != NULL;
}

/* Ends with an open scope and a tensor in it, which the thread's end releases. */
static void *leave_a_scope_open(void *unused)
{
    int (*begin)(void);
    kn_device *(*host)(void);
    kn_tensor *(*full)(int, const int64_t *, double, const kn_tensor_options *);
    if (find("kn_scope_begin", &begin) && find("kn_device_host", &host) && find("kn_full_with", &full)) {
        begin();
        made = full(KN_SHAPE(1000), 1, &(kn_tensor_options){.device = host()}) != NULL;
    }
    sem_post(&opened);
    sem_wait(&closed);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    library = dlopen(argc > 1 ? argv[1] : "libkoine.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    sem_init(&opened, 0, 0);
    sem_init(&closed, 0, 0);
    if (pthread_create(&thread, NULL, leave_a_scope_open, NULL) != 0)
        return 1;
    sem_wait(&opened);
    int failed = dlclose(library);
    sem_post(&closed);
    pthread_join(thread, NULL); /* would crash here if the destructor of the thread's scopes were unloaded */
    if (failed || !made || !dlopen(argc > 1 ? argv[1] : "libkoine.so", RTLD_NOW | RTLD_NOLOAD)) {
        fprintf(stderr, "the library did not stay\n");
        return 1;
    }
    return 0;
}
