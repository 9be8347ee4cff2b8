// Records which functions of the compiled module call which: a library to preload under a build with
// -finstrument-functions. Used by tools/walks.py.
//
// The calls form a tree: the path from the root to a node is a stack of functions that has occurred. The nodes are
// numbered in the order in which they occur.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    void *function;
    struct node *caller, *first_callee, *next_sibling, *next_node;
    long number;
};

static struct node root;
static struct node *last = &root;
static volatile int is_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct node *current;

// Forget the calls of the walk before, and record. No thread may be in the module.
void walk_start(void) {
    root = (struct node){0};
    last = &root;
    is_on = 1;
}

void walk_stop(void) { is_on = 0; }

// Write a line for every node: its number, the number of its caller (0: none), the function's address in the module.
int walk_write(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    for (struct node *node = root.next_node; node; node = node->next_node) {
        Dl_info module;
        if (!dladdr(node->function, &module)) continue;
        fprintf(file, "%ld %ld %#lx\n", node->number, node->caller->number,
                (unsigned long)((char *)node->function - (char *)module.dli_fbase));
    }
    return fclose(file);
}

void __cyg_profile_func_enter(void *function, void *call_site) {
    (void)call_site;
    if (!is_on) return;
    struct node *caller = current ? current : &root;
    pthread_mutex_lock(&lock);
    struct node *callee = caller->first_callee;
    while (callee && callee->function != function) callee = callee->next_sibling;
    if (!callee) {
        callee = calloc(1, sizeof *callee);
        if (!callee) abort();
        *callee = (struct node){.function = function,
                                .caller = caller,
                                .next_sibling = caller->first_callee,
                                .number = last->number + 1};
        caller->first_callee = callee;
        last = last->next_node = callee;
    }
    pthread_mutex_unlock(&lock);
    current = callee;
}

void __cyg_profile_func_exit(void *function, void *call_site) {
    (void)call_site;
    if (is_on && current && current->function == function) current = current->caller;
}

struct start {
    void *(*run)(void *);
    void *argument;
    struct node *caller;
};

static void *begin(void *given) {
    const struct start start = *(struct start *)given;
    free(given);
    current = start.caller;
    return start.run(start.argument);
}

// A thread continues the stack of the function that starts it.
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    if (!start) return EAGAIN;
    *start = (struct start){.run = run, .argument = argument, .caller = is_on ? current : NULL};
    const int error = create(thread, attributes, begin, start);
    if (error) free(start);
    return error;
}
