/* Lets system calls on files go wrong, by rule. Load it with LD_PRELOAD.
 *
 * Rules are lines of the file that LABELWOOD_FAULTS names; the file may change while the process runs:
 *
 *     CALLS PATTERN FIRST COUNT ACTION VALUE
 *
 * CALLS    names of calls, separated by commas: open (of what exists), create (open of what does not), write, flush,
 *          rename, mkdir, remove, truncate, map; or "change": all of them but open and map
 * PATTERN  of the paths, as for fnmatch; "*" also matches "/"
 * FIRST    number of the first call that is hit, from 0
 * COUNT    number of calls that are hit; -1: all further ones
 * ACTION   fail   the call fails with errno VALUE
 *          after  the call is done and then fails with errno VALUE
 *          short  a write takes at most VALUE bytes
 *          delay  the call waits for VALUE milliseconds
 *          kill   the process is killed before the call
 *          torn   the process is killed after half of a write
 *          cut    power cut: as kill, and everything that was not flushed is lost. VALUE is the part of unflushed
 *                 bytes that is left, in percent; -1: all of them are left, as zeros
 *          lose   as cut, but the process lives: this call fails, and with COUNT -1 all further ones
 *
 * A power cut undoes what the disk need not have kept: bytes since the last flush of their file, and names created,
 * renamed or removed since the last flush of their directory. What was flushed stays.
 *
 * fault_arm plans a single fault from within the process. fault_forget takes everything for flushed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LONG 4096

enum call { OPEN = 1, CREATE = 2, WRITE = 4, FLUSH = 8, RENAME = 16, MKDIR = 32, REMOVE = 64, TRUNCATE = 128, MAP = 256 };
#define CHANGE (CREATE | WRITE | FLUSH | RENAME | MKDIR | REMOVE | TRUNCATE)
static const char* const NAMES[] = {"open", "create", "write", "flush", "rename", "mkdir", "remove", "truncate", "map"};
static const char* const ACTIONS[] = {"fail", "after", "short", "delay", "kill", "torn", "cut", "lose"};
enum action { FAIL, AFTER, SHORT, DELAY, KILL, TORN, CUT, LOSE, NOTHING };

struct rule {
    int calls, first, count, value, seen;
    enum action action;
    char pattern[LONG];
};
#define MOST_RULES 16
static struct rule rules[MOST_RULES];
static int n_rules, armed; /* armed: the rules come from fault_arm */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
/* Held for reading by every call under way: a power cut waits for them, and none begins during one. */
static pthread_rwlock_t power = PTHREAD_RWLOCK_INITIALIZER;

/* Files opened for writing, with the number of bytes that are safe. */
struct file {
    dev_t dev;
    ino_t ino;
    int fd;
    off_t flushed;
};
/* Changes of names that are not flushed. */
struct change {
    enum { CREATED, RENAMED, EXCHANGED, UNLINKED, RMDIRED } kind;
    char path[LONG], from[LONG], kept[LONG], parent[LONG];
};
#define MOST 8192
static struct file files[MOST];
static struct change* changes[MOST];
static int n_files, n_changes, n_kept;

static int calls_of(char* names) {
    int found = 0;
    char* rest;
    for (char* name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (strcmp(name, "change") == 0) found |= CHANGE;
        for (int i = 0; i < 9; ++i)
            if (strcmp(name, NAMES[i]) == 0) found |= 1 << i;
    }
    return found;
}

static void read_rules(void) {
    static struct timespec seen;
    const char* path = getenv("LABELWOOD_FAULTS");
    struct stat about;
    if (armed || path == NULL || stat(path, &about) != 0) return;
    if (about.st_mtim.tv_sec == seen.tv_sec && about.st_mtim.tv_nsec == seen.tv_nsec) return;
    seen = about.st_mtim;
    n_rules = 0;
    FILE* file = fopen(path, "r");
    if (file == NULL) return;
    char names[200], action[20];
    struct rule rule = {0};
    while (n_rules < MOST_RULES && fscanf(file, "%199s %4095s %d %d %19s %d", names, rule.pattern, &rule.first,
                                          &rule.count, action, &rule.value) == 6) {
        rule.calls = calls_of(names);
        rule.action = FAIL;
        while (rule.action < NOTHING && strcmp(ACTIONS[rule.action], action) != 0) ++rule.action;
        rules[n_rules++] = rule;
    }
    fclose(file);
}

void fault_arm(const char* under, int first, const char* action, int value, int stays) {
    pthread_mutex_lock(&guard);
    struct rule* rule = &rules[0];
    *rule = (struct rule){CHANGE, first, stays ? -1 : 1, value, 0, FAIL, ""};
    while (rule->action < NOTHING && strcmp(ACTIONS[rule->action], action) != 0) ++rule->action;
    snprintf(rule->pattern, LONG, "%s*", under);
    n_rules = armed = 1;
    n_files = n_changes = 0;
    pthread_mutex_unlock(&guard);
}
int fault_calls(void) { return rules[0].seen; }

static void forget(void) {
    for (int i = 0; i < n_files; ++i) close(files[i].fd);
    for (int i = 0; i < n_changes; ++i) {
        if (changes[i]->kept[0]) REAL(unlink)(changes[i]->kept);
        free(changes[i]);
    }
    n_files = n_changes = 0;
}
void fault_forget(void) {
    pthread_mutex_lock(&guard);
    forget();
    pthread_mutex_unlock(&guard);
}

static void path_of(int fd, char* path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, LONG - 1);
    path[size > 0 ? size : 0] = 0;
}

static void path_at(int folder, const char* name, char* path) {
    if (name[0] == '/' || folder == AT_FDCWD) {
        snprintf(path, LONG, "%s", name);
        return;
    }
    path_of(folder, path);
    strncat(path, "/", LONG - strlen(path) - 1);
    strncat(path, name, LONG - strlen(path) - 1);
}

static int is_watched(const char* path) {
    for (int i = 0; i < n_rules; ++i)
        if (fnmatch(rules[i].pattern, path, 0) == 0) return 1;
    return 0;
}

static int erase(const char* path, const struct stat* about, int kind, struct FTW* place) {
    return REAL(remove)(path);
}

static void lose_bytes(const struct file* file, int percent) {
    struct stat about;
    if (fstat(file->fd, &about) != 0 || about.st_size <= file->flushed) return;
    const off_t extra = about.st_size - file->flushed;
    const off_t left = file->flushed + (percent < 0 ? 0 : extra * percent / 100);
    (void)!REAL(ftruncate64)(file->fd, left);
    if (percent < 0) (void)!REAL(ftruncate64)(file->fd, about.st_size);
}

static void undo(const struct change* one) {
    switch (one->kind) {
        case CREATED:
            nftw(one->path, erase, 16, FTW_DEPTH | FTW_PHYS);
            break;
        case RENAMED:
            REAL(rename)(one->path, one->from);
            if (one->kept[0]) REAL(rename)(one->kept, one->path);
            break;
        case EXCHANGED:
            REAL(renameat2)(AT_FDCWD, one->from, AT_FDCWD, one->path, RENAME_EXCHANGE);
            break;
        case UNLINKED:
            if (one->kept[0]) REAL(rename)(one->kept, one->path);
            break;
        case RMDIRED:
            REAL(mkdir)(one->path, 0777);
            break;
    }
}

static void end_here(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Undo what was not flushed, when no call is under way; the caller holds power for reading. */
static void cut_power(int percent) {
    pthread_rwlock_unlock(&power);
    pthread_rwlock_wrlock(&power);
    for (int i = 0; i < n_files; ++i) lose_bytes(&files[i], percent);
    for (int i = n_changes - 1; i >= 0; --i) {
        undo(changes[i]);
        changes[i]->kept[0] = 0; /* it has its name again */
    }
    forget();
    pthread_rwlock_unlock(&power);
    pthread_rwlock_rdlock(&power);
}

/* What to do about a call; the guard is held. */
static enum action decide(enum call call, const char* path, int* value) {
    enum action found = NOTHING;
    for (int i = 0; i < n_rules; ++i) {
        struct rule* rule = &rules[i];
        if (!(rule->calls & (int)call) || fnmatch(rule->pattern, path, 0) != 0) continue;
        const int at = rule->seen++;
        if (at < rule->first || (rule->count >= 0 && at >= rule->first + rule->count)) continue;
        if (rule->action == KILL) end_here();
        const int is_over = rule->action == LOSE && at > rule->first;
        found = is_over ? FAIL : rule->action;
        *value = is_over ? EIO : rule->value;
    }
    return found;
}

static void leave(const int* is_under_way) {
    const int error = errno;
    if (*is_under_way) pthread_rwlock_unlock(&power);
    errno = error;
}
/* The call is under way, if it is at all, until the function returns. */
#define UNDER_WAY(holds) __attribute__((cleanup(leave), unused)) const int under_way_ = holds

/* The action for a call. A delay is over when this returns, and a failure is in errno. Unless the call fails, it is
 * under way; the caller says UNDER_WAY. */
static enum action before(enum call call, const char* path, int* value) {
    pthread_rwlock_rdlock(&power);
    pthread_mutex_lock(&guard);
    read_rules();
    enum action action = n_rules ? decide(call, path, value) : NOTHING;
    pthread_mutex_unlock(&guard);
    if (action == CUT || action == LOSE) cut_power(*value);
    if (action == CUT) end_here();
    if (action == LOSE) action = FAIL, *value = EIO;
    if (action == DELAY) {
        const struct timespec pause = {*value / 1000, *value % 1000 * 1000000L};
        nanosleep(&pause, NULL);
    }
    if (action == FAIL) {
        pthread_rwlock_unlock(&power);
        errno = *value;
    }
    return action;
}

#define RUN(call, path, failure, type, expression)       \
    int value_ = 0;                                      \
    const enum action action_ = before(call, path, &value_); \
    if (action_ == FAIL) return failure;                 \
    UNDER_WAY(1);                                        \
    type result_ = expression;                           \
    if (action_ == AFTER) errno = value_, result_ = failure

static void parent_of(const char* path, char* parent) {
    snprintf(parent, LONG, "%s", path);
    char* end = strrchr(parent, '/');
    if (end != NULL) *end = 0;
}

static struct change* note(int kind, const char* path, const char* from, const char* kept) {
    pthread_mutex_lock(&guard);
    struct change* one = NULL;
    if (n_changes < MOST && is_watched(path) && (one = malloc(sizeof *one)) != NULL) {
        one->kind = kind;
        snprintf(one->path, LONG, "%s", path);
        snprintf(one->from, LONG, "%s", from);
        snprintf(one->kept, LONG, "%s", kept);
        parent_of(path, one->parent);
        changes[n_changes++] = one;
    }
    pthread_mutex_unlock(&guard);
    return one;
}

/* Keep a file that loses its name under another one; the new name is empty if the path is no file. */
static void keep(const char* path, char* kept) {
    struct stat about;
    kept[0] = 0;
    pthread_mutex_lock(&guard);
    const int watched = n_rules && is_watched(path) && lstat(path, &about) == 0 && S_ISREG(about.st_mode);
    const int number = n_kept++;
    pthread_mutex_unlock(&guard);
    if (!watched) return;
    char folder[LONG];
    parent_of(rules[0].pattern, folder); /* outside of what the rules watch */
    snprintf(kept, LONG, "%.3800s/.kept.%d.%d", folder, (int)getpid(), number);
    if (link(path, kept) != 0) kept[0] = 0;
}

static void track(int fd, const char* path, int is_new) {
    struct stat about;
    char link[64];
    pthread_mutex_lock(&guard);
    if (n_rules && is_watched(path) && n_files < MOST && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        int known = 0;
        for (int i = 0; i < n_files; ++i) known |= files[i].ino == about.st_ino && files[i].dev == about.st_dev;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const int own = known ? -1 : REAL(open64)(link, O_RDWR | O_CLOEXEC);
        if (own >= 0) files[n_files++] = (struct file){about.st_dev, about.st_ino, own, is_new ? 0 : about.st_size};
    }
    pthread_mutex_unlock(&guard);
}

/* True if a directory below a path, or one that it was in, has been removed from that path: its names do not matter
 * once the path is flushed. */
static int is_gone(const char* parent, const char* path) {
    const size_t size = strlen(path);
    if (strncmp(parent, path, size) != 0 || parent[size] != '/') return 0;
    char child[LONG];
    struct stat about;
    snprintf(child, LONG, "%s", parent);
    char* end = strchr(child + size + 1, '/');
    if (end != NULL) *end = 0;
    return lstat(child, &about) != 0;
}

static void note_flush(int fd, const char* path) {
    struct stat about;
    if (fstat(fd, &about) != 0) return;
    pthread_mutex_lock(&guard);
    for (int i = 0; i < n_files; ++i) /* a flush is of the file, whichever descriptor wrote to it */
        if (files[i].ino == about.st_ino && files[i].dev == about.st_dev) files[i].flushed = about.st_size;
    int left = 0;
    for (int i = 0; i < n_changes; ++i) {
        if (S_ISDIR(about.st_mode) && (strcmp(changes[i]->parent, path) == 0 || is_gone(changes[i]->parent, path))) {
            if (changes[i]->kept[0]) REAL(unlink)(changes[i]->kept);
            free(changes[i]);
        } else {
            changes[left++] = changes[i];
        }
    }
    n_changes = left;
    pthread_mutex_unlock(&guard);
}

ssize_t write(int fd, const void* data, size_t size) {
    char path[LONG];
    path_of(fd, path);
    int value = 0;
    const int is_file = path[0] == '/';
    const enum action action = is_file ? before(WRITE, path, &value) : NOTHING;
    if (action == FAIL) return -1;
    UNDER_WAY(is_file);
    if (action == TORN) {
        (void)!REAL(write)(fd, data, size / 2);
        end_here();
    }
    if (action == SHORT && size > (size_t)value) size = (size_t)value;
    const ssize_t done = REAL(write)(fd, data, size);
    if (action != AFTER) return done;
    errno = value;
    return -1;
}

static int flushed(int fd, int (*real)(int)) {
    char path[LONG];
    path_of(fd, path);
    RUN(FLUSH, path, -1, int, real(fd));
    if (result_ == 0) note_flush(fd, path);
    return result_;
}
int fsync(int fd) { return flushed(fd, REAL(fsync)); }
int fdatasync(int fd) { return flushed(fd, REAL(fdatasync)); }

static int opened(const char* path, int flags, mode_t bits, int (*real)(const char*, int, ...)) {
    const int writes = (flags & O_ACCMODE) != O_RDONLY;
    const int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
    RUN(is_new ? CREATE : OPEN, path, -1, int, real(path, flags, bits));
    if (result_ >= 0 && writes) track(result_, path, is_new || (flags & O_TRUNC));
    if (result_ >= 0 && is_new) note(CREATED, path, "", "");
    return result_;
}

#define OPENS(name)                                       \
    int name(const char* path, int flags, ...) {          \
        va_list rest;                                     \
        va_start(rest, flags);                            \
        const mode_t bits = va_arg(rest, mode_t);         \
        va_end(rest);                                     \
        return opened(path, flags, bits, REAL(name));     \
    }
OPENS(open)
OPENS(open64)

int mkdir(const char* path, mode_t bits) {
    RUN(MKDIR, path, -1, int, REAL(mkdir)(path, bits));
    if (result_ == 0) note(CREATED, path, "", "");
    return result_;
}

int symlink(const char* target, const char* path) {
    RUN(CREATE, path, -1, int, REAL(symlink)(target, path));
    if (result_ == 0) note(CREATED, path, "", "");
    return result_;
}

int rmdir(const char* path) {
    RUN(REMOVE, path, -1, int, REAL(rmdir)(path));
    if (result_ == 0) note(RMDIRED, path, "", "");
    return result_;
}

int unlink(const char* path) {
    char kept[LONG];
    int value = 0;
    const enum action action = before(REMOVE, path, &value);
    if (action == FAIL) return -1;
    UNDER_WAY(1);
    keep(path, kept);
    const int result = REAL(unlink)(path);
    if (result == 0) note(UNLINKED, path, "", kept);
    return result;
}

int unlinkat(int folder, const char* name, int flags) {
    char path[LONG], kept[LONG] = "";
    path_at(folder, name, path);
    int value = 0;
    const enum action action = before(REMOVE, path, &value);
    if (action == FAIL) return -1;
    UNDER_WAY(1);
    if (!(flags & AT_REMOVEDIR)) keep(path, kept);
    const int result = REAL(unlinkat)(folder, name, flags);
    if (result == 0) note(flags & AT_REMOVEDIR ? RMDIRED : UNLINKED, path, "", kept);
    return result;
}

int rename(const char* from, const char* to) {
    char kept[LONG];
    int value = 0;
    const enum action action = before(RENAME, to, &value);
    if (action == FAIL) return -1;
    UNDER_WAY(1);
    keep(to, kept);
    int result = REAL(rename)(from, to);
    if (result == 0) note(RENAMED, to, from, kept);
    if (action == AFTER) errno = value, result = -1;
    return result;
}

int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
    RUN(RENAME, to, -1, int, REAL(renameat2)(a, from, b, to, flags));
    if (result_ == 0) note(flags & RENAME_EXCHANGE ? EXCHANGED : RENAMED, to, from, "");
    return result_;
}

static int truncated(int fd, off64_t size) {
    char path[LONG];
    path_of(fd, path);
    RUN(TRUNCATE, path, -1, int, REAL(ftruncate64)(fd, size));
    pthread_mutex_lock(&guard);
    struct stat about;
    if (result_ == 0 && fstat(fd, &about) == 0)
        for (int i = 0; i < n_files; ++i)
            if (files[i].ino == about.st_ino && files[i].dev == about.st_dev && files[i].flushed > size)
                files[i].flushed = size;
    pthread_mutex_unlock(&guard);
    return result_;
}
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }
int ftruncate(int fd, off_t size) { return truncated(fd, size); }

static void* mapped(void* where, size_t size, int access, int flags, int fd, off64_t offset) {
    char path[LONG];
    path_of(fd, path);
    RUN(MAP, path, MAP_FAILED, void*, (void*)syscall(SYS_mmap, where, size, access, flags, fd, offset));
    return result_;
}
void* mmap(void* where, size_t size, int access, int flags, int fd, off_t offset) {
    if (fd >= 0) return mapped(where, size, access, flags, fd, offset);
    return (void*)syscall(SYS_mmap, where, size, access, flags, fd, offset);
}
void* mmap64(void* where, size_t size, int access, int flags, int fd, off64_t offset) {
    if (fd >= 0) return mapped(where, size, access, flags, fd, offset);
    return (void*)syscall(SYS_mmap, where, size, access, flags, fd, offset);
}
